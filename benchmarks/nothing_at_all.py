"""What a framework and a server cost by themselves: `make bench-serve` asks this as it asks the services."""

from fastapi import FastAPI
from pydantic import BaseModel


class Reward(BaseModel):
    """The reward of a decision."""

    id: int
    value: float


app = FastAPI()


@app.post("/decide")
async def decide() -> dict[str, int]:
    """Decide nothing."""
    return {"id": 1, "arm": 1}


@app.post("/reward")
async def reward(sent: Reward) -> None:
    """Forget a reward."""
