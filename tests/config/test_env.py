"""Which variables hold secrets, going by their names."""

from __future__ import annotations

import pytest

from flowrt.config.env import looks_secret


@pytest.mark.parametrize(
    "name",
    ["KEY", "API_KEY", "OPENAI_APIKEY", "AWS_SECRET_ACCESS_KEY", "SLACK_BOT_TOKEN", "TOKEN",
     "API_TOKEN_2", "SLACK_SIGNING_SECRET", "CLIENT_SECRET", "DB_PASSWORD", "PGPASSWORD", "DB_PASS",
     "db_pwd", "GOOGLE_CREDENTIALS", "SENTRY_DSN", "KEYS"],
)  # fmt: skip
def test_a_name_that_ends_in_a_word_for_a_secret_is_one(name: str) -> None:
    assert looks_secret(name)


@pytest.mark.parametrize(
    "name",
    ["MONKEY", "MAX_TOKENS", "TOKEN_LIMIT", "KEY_PREFIX", "PUBLIC_KEY", "PORT", "COMPASS",
     "SECRET_NAME"],
)  # fmt: skip
def test_other_names_are_not(name: str) -> None:
    assert not looks_secret(name)
