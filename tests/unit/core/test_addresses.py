"""Addresses are printed and written down without secrets."""

from tests.rows import each_row

from bertwright.core.addresses import is_secret, is_url, redact, redact_credentials


@each_row(
    ("text", "safe"),
    [
        ("https://me:word@host/a?sig=1 and s3://k:s@bucket/x", "https://host/a and s3://bucket/x"),
        ("https://token@host/a", "https://host/a"),
        ("https://me:w@rd@host/a and ftp://me:w@rd@host/a", "https://host/a and ftp://host/a"),
        ("abfs://box@account.dfs.core.windows.net/a", "abfs://box@account.dfs.core.windows.net/a"),
        ("is it? yes", "is it? yes"),
        ("https://host/a/?sig=1: no such file", "https://host/a/ no such file"),
        ("HTTPS://me:word@host/a?sig=1", "HTTPS://host/a"),
        ("https://host?mail=me@home", "https://host"),
    ],
)
def test_secrets_are_not_shown(text: str, safe: str) -> None:
    assert redact(text) == safe


@each_row(
    ("url", "safe"),
    [
        ("https://me:word@host/a.bz2?sv=2024&sig=1", "https://host/a.bz2"),
        ("https://host/a.bz2?X-Amz-Date=1&X-Amz-Signature=2", "https://host/a.bz2"),
        ("https://host/a.bz2?Expires=1&Signature=2", "https://host/a.bz2"),
        ("ftp://me:word@host/a", "ftp://host/a"),
        ("https://me:w@rd@host/a", "https://host/a"),
        ("abfs://box@account.dfs.core.windows.net/a", "abfs://box@account.dfs.core.windows.net/a"),
        ("s3://texts/part-?.txt", "s3://texts/part-?.txt"),
        ("novels/?.txt", "novels/?.txt"),
    ],
)
def test_addresses_are_written_down_without_secrets(url: str, safe: str) -> None:
    assert redact_credentials(url) == safe


def test_an_unsigned_query_is_replaced_by_its_hash() -> None:
    first, second = (redact_credentials(f"https://host/get?id={i}&token=secret") for i in (1, 2))
    assert first != second
    assert first.startswith("https://host/get?hidden-") and "secret" not in first
    assert redact_credentials(first) == first


def test_what_is_an_address() -> None:
    assert is_url("s3://a/b") and is_url("https://a") and is_url("memory://a") and is_url("HTTPS://a")
    assert not is_url("a/b") and not is_url("/a") and not is_url("c:/a") and not is_url("wiki: a")


@each_row(
    "name",
    [
        *("HF_TOKEN", "PGPASSWORD", "api-key", "AZURE_STORAGE_CONNECTION_STRING", "SAS", "APIKEY", "X-Amz-Signature"),
        *("sig", "PGPASS", "MYSQL_PWD", "db_pass", "SSH_PASSPHRASE"),
    ],
)
def test_a_secret_is_known_by_its_name(name: str) -> None:
    assert is_secret(name)


@each_row(
    "name",
    [
        *("TOKENIZERS_PARALLELISM", "KEYBOARD", "MAX_TOKENS", "SASL_MECHANISM", "SIGTERM", "OLDPWD", "SECOND_PASS"),
        *("PGPASSFILE", "HF_TOKEN_PATH", "AWS_SHARED_CREDENTIALS_FILE", "password-stdin"),
    ],
)
def test_words_that_hold_such_a_name_are_none(name: str) -> None:
    assert not is_secret(name)
