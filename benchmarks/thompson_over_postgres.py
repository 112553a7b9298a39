"""What one would write by hand, and `make bench-serve` runs: Thompson sampling over PostgreSQL, with any workers."""

import os
import random
from contextlib import asynccontextmanager

import psycopg_pool
from fastapi import FastAPI
from pydantic import BaseModel


class Reward(BaseModel):
    """The reward of a decision."""

    id: int
    value: float


@asynccontextmanager
async def lifespan(app):
    """Keep some connections open."""
    async with psycopg_pool.AsyncConnectionPool(os.environ["PLACE"], min_size=8, max_size=8, open=False) as app.pool:
        yield


app = FastAPI(lifespan=lifespan)


@app.post("/decide")
async def decide() -> dict[str, int]:
    """Draw the mean of each arm, and play the best."""
    async with app.pool.connection() as connection:
        rows = await (await connection.execute("SELECT arm, wins, losses FROM arms")).fetchall()
        arm = max(rows, key=lambda row: random.betavariate(1 + row[1], 1 + row[2]))[0]
        made = await connection.execute("INSERT INTO decisions (arm) VALUES (%s) RETURNING id", [arm])
        return {"id": (await made.fetchone())[0], "arm": arm}


@app.post("/reward")
async def reward(sent: Reward) -> None:
    """Count the reward of a decision once."""
    async with app.pool.connection() as connection:
        query = "UPDATE decisions SET reward = %s WHERE id = %s AND reward IS NULL RETURNING arm"
        for (arm,) in await (await connection.execute(query, [sent.value, sent.id])).fetchall():
            column = "wins" if sent.value else "losses"
            await connection.execute(f"UPDATE arms SET {column} = {column} + 1 WHERE arm = %s", [arm])
