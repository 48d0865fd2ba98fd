"""A phone book: the one record of each user that this lesson writes and reads."""

from __future__ import annotations

from tri_memory.entity.records import UserMemoryStore

NOBODY = ""


class PhoneBook:
    """Each user's phone number, a record of type identity in a store of users' records."""

    def __init__(self, store: UserMemoryStore) -> None:
        self.store = store

    async def read(self, user: str) -> str:
        """The number; "" where there is none."""
        found = await self.store.find(user, memory_type="identity", entity_ids=["phone"])
        return str(found[0].content["number"]) if found else NOBODY

    async def write(self, user: str, number: str) -> None:
        """Replace the number; it stands when this returns."""
        await self.store.put(user, "identity", "phone", {"number": number})

    async def version(self, user: str) -> int:
        """Another number after each write of this user: a small row by its primary key."""
        return await self.store.version(user)
