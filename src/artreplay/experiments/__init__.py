"""Every figure and table of the paper as data, a runner that resumes, and summaries of what came out."""
