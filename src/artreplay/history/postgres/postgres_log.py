"""placeholder until the merge"""

from artreplay.history.stored_log import StoredLog


class PostgresLog(StoredLog):
    """placeholder"""
