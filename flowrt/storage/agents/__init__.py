"""What a store keeps for agents that have an id: threads, their turns, and facts about people."""
