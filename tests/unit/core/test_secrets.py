"""How a text holds a secret: what is refused in descriptions of jobs, and what stands for it in commands."""

from tests.rows import each_row

from bertwright.core.errors import DataError
from bertwright.core.secrets import (
    HIDDEN,
    hide_in_value,
    hide_in_values,
    hide_in_words,
    hide_secrets,
    secret_in,
    secrets_in_words,
)

NAMED = "which is the name of a secret"
ADDRESS = "an address with a password, a token or a query"
HEADER = "an authentication header (Authorization, Bearer)"
TOKEN = "a token, known by its form"
PASSWORD = "a password or a key that a command is given"
SHAPED = {
    "Hugging Face": "hf_" + "planted1" * 4,
    "GitHub": "ghp_" + "Planted1" * 4,
    "GitHub, fine-grained": "github_pat_" + "Planted_1" * 5,
    "GitLab": "glpat-" + "planted-1" * 3,
    "Amazon": "AKIA" + "PLANTED1" * 2,
    "OpenAI": "sk-proj-" + "Planted_1" * 4,
    "JSON Web Token": "eyJplanted1.eyJplanted2_-.planted-3",
    "private key": "-----BEGIN OPENSSH PRIVATE KEY-----\nplanted",
}
"""Made-up tokens in the form of each issuer."""


@each_row(
    ("text", "found"),
    [
        ("export HF_TOKEN=planted", f"HF_TOKEN=..., {NAMED}"),
        ("--api-key=planted", f"api-key=..., {NAMED}"),
        ("--env=TOKEN=planted", f"TOKEN=..., {NAMED}"),
        ("--env=HF_TOKEN=planted", f"HF_TOKEN=..., {NAMED}"),
        ("huggingface-cli login --token planted", f"--token ..., {NAMED}"),
        ("mysql --password 'planted' db", f"--password ..., {NAMED}"),
        ("mpirun -n 2 -genv HF_TOKEN planted run", f"-env HF_TOKEN ..., {NAMED}"),
        ("mpirun -env MY_SECRET 'planted' run", f"-env MY_SECRET ..., {NAMED}"),
        ("curl -H 'Authorization: Bearer planted' host", HEADER),
        ("curl -H 'authorization: planted' host", HEADER),
        ('curl -H "Proxy-Authorization: Basic cGxhbnRlZA==" host', HEADER),
        ("say Bearer planted1", HEADER),
        ("curl https://host/a?sig=planted", ADDRESS),
        ("https://me:planted@host/a", ADDRESS),
        ("me:planted@registry.example.org/bert:1", ADDRESS),
        ("--container-image=me:planted@localhost:5000/bert", ADDRESS),
        ("az login --service-principal -u app -p planted --tenant t", PASSWORD),
        ("set -e; docker login -u me -p 'planted' reg.io && srun -p gpu x", PASSWORD),
        ("helm registry login reg.io -u me -p=planted", PASSWORD),
        ("curl -u me:planted https://host/a", PASSWORD),
        ('curl -fsSLu "$WHO:planted" https://host/a', PASSWORD),
        ("curl --proxy-user=me:planted https://host/a", PASSWORD),
        (f"wandb login --relogin {'0123456789' * 4}", PASSWORD),
        ("export MYSQL_PWD=planted", f"MYSQL_PWD=..., {NAMED}"),
    ],
)
def test_a_secret_in_a_text_is_described_without_its_value(text: str, found: str) -> None:
    assert secret_in(text) == found and "planted" not in found


@each_row(
    "text",
    [
        "HF_TOKEN=$(cat ~/.hf)",
        'login --token "$HF_TOKEN"',
        "login --token $HF_TOKEN",
        "login --token --quiet",
        "login --token",
        "mpirun -genv HF_TOKEN $HF_TOKEN run",
        "mpirun -genv OMP_NUM_THREADS 4 run",
        "docker run --env HF_TOKEN image",
        "curl -H 'Authorization: Bearer $HF_TOKEN' host",
        'curl -H "Authorization: $HEADER" host',
        "the bearer of this letter",
        "bearer certificates",
        "spm --max-tokens 5",
        "--container-image=nvcr.io#nvidia/pytorch:25.01-py3",
        "export HF_TOKEN=`cat ~/.hf`",
        "az login --service-principal -u app -p $PASSWORD --tenant t",
        'docker login -u me -p "$(cat ~/.reg)" reg.io',
        "docker login --username me --password-stdin reg.io < ~/.reg",
        "docker login reg.io && srun -p gpu bertwright --help",
        "ssh -p 2222 login.example.org",
        "curl -u me https://host:8080/a",
        'curl -u "$WHO:$PASSWORD" https://host/a',
        "curl --user-agent=a:b -H 'Accept: text/html' https://host/a",
        "wandb login --relogin",
        "wandb login; git checkout 0123456789012345678901234567890123456789",
        "git checkout 0123456789012345678901234567890123456789",
        "registry.example.org/bert:cuda@sha256:0123456789abcdef",
        "bert:cuda@sha256:0123456789abcdef",
        "azureml:AzureML-acpt-pytorch-2.8-cuda12.6@latest",
        "npm install npm:words@4.17.21",
        "git clone git@github.com:me/berts.git",
        "--mail-user=me@example.org",
        "mailto:me@example.org",
        "hf_transfer hf_xet_high_performance_downloads_of_models",
        "sk-learn-container-image-for-training",
        "registry/sk-Learn-1-container-image-for-training",
        "AKIA is a name",
        "SECOND_PASS=1 run; cd $OLDPWD; export PGPASSFILE=~/.pgpass",
    ],
)
def test_references_and_empty_values_are_no_secrets(text: str) -> None:
    assert secret_in(text) == ""


@each_row("issuer", SHAPED)
def test_a_token_is_known_by_its_form(issuer: str) -> None:
    token = SHAPED[issuer]
    for text in (token, f"export X={token}", f"run --name '{token}' now"):
        assert secret_in(text) == TOKEN
        assert "lanted" not in "".join(hide_in_words((text,))).lower()
    assert hide_in_value("X", token) == HIDDEN


def test_the_value_of_an_option_may_be_the_next_word() -> None:
    assert secrets_in_words(("run", "--password", "planted")) == {2: f"--password ..., {NAMED}"}
    for words in (("--user", "planted"), ("--password", "--quiet"), ("--password",), ()):
        assert secrets_in_words(words) == {}
    assert secrets_in_words(("login --password", "planted")) == {}, "a line that ends is no word"


def test_secrets_of_a_command_are_hidden() -> None:
    words = (
        "p",
        "--api-key=planted",
        "--token",
        "planted",
        "--password",
        "--quiet",
        "HF_TOKEN=planted b",
        "a=b",
        "--env=TOKEN=planted",
    )
    words += ("Authorization: Bearer planted", "https://me:planted@host/a")
    assert hide_in_words(words) == (
        *("p", f"--api-key={HIDDEN}", "--token", HIDDEN, "--password", "--quiet", f"HF_TOKEN={HIDDEN}", "a=b"),
        f"--env=TOKEN={HIDDEN}",
        *(f"Authorization: Bearer {HIDDEN}", "https://host/a"),
    )
    assert hide_in_value("HF_TOKEN", "planted") == HIDDEN and hide_in_value("DATA", "a") == "a"
    lines = ("docker login -u me -p planted reg.io", "curl -u me:planted host", "me:planted@reg.io/bert")
    assert hide_in_words(lines) == (
        f"docker login -u me -p {HIDDEN} reg.io",
        f"curl -u me:{HIDDEN} host",
        "reg.io/bert",
    )


@each_row(
    ("words", "position", "found", "hidden"),
    [
        (("curl", "-u", "me:planted", "https://host/a"), 2, PASSWORD, f"me:{HIDDEN}"),
        (("/usr/bin/curl", "-H", "Accept: text/html", "--user", "me:planted"), 4, PASSWORD, f"me:{HIDDEN}"),
        (("curl", "-fsSLu", "me:planted words"), 2, PASSWORD, f"me:{HIDDEN}"),
        (("docker", "login", "-u", "me", "-p", "planted", "reg.io"), 5, PASSWORD, HIDDEN),
        (("docker", "login", "-u", "me", "-pplanted"), 4, PASSWORD, f"-p{HIDDEN}"),
        (("wandb", "login", "0123456789" * 4), 2, PASSWORD, HIDDEN),
        (("mpirun", "-genv", "HF_TOKEN", "planted", "run"), 3, f"-env HF_TOKEN ..., {NAMED}", HIDDEN),
        (("run", "--env=HF_TOKEN=planted"), 1, f"HF_TOKEN=..., {NAMED}", f"--env=HF_TOKEN={HIDDEN}"),
    ],
)
def test_the_words_before_it_may_tell_that_a_word_is_a_secret(
    words: tuple[str, ...], position: int, found: str, hidden: str
) -> None:
    assert secrets_in_words(words) == {position: found}
    assert hide_in_words(words) == (*words[:position], hidden, *words[position + 1 :])


@each_row(
    "words",
    [
        ("curl", "-u", "me", "https://host:8080/a"),
        ("curl", "-u", "me:$PASSWORD"),
        ("curl -u me", "ssh -p 2222 host:planted"),
        ("docker login", "ssh -p 2222 host"),
        ("podman", "run", "-p", "8080"),
        ("az://box/a", "login", "-p", "x"),
    ],
)
def test_words_that_tell_of_no_secret_stay(words: tuple[str, ...]) -> None:
    assert secrets_in_words(words) == {} and hide_in_words(words) == words


@each_row("option", ["-genv", "--genv", "-env", "--env"])
def test_mpirun_variables_have_their_value_in_the_next_word(option: str) -> None:
    secret = ("mpirun", option, "API_TOKEN", "planted", option, "DB_PASSWORD", "-planted")
    plain = (option, "OMP_NUM_THREADS", "4", "run", "--max-tokens", "x")
    assert hide_in_words(secret + plain) == (
        *("mpirun", option, "API_TOKEN", HIDDEN, option, "DB_PASSWORD", HIDDEN),
        *plain,
    )
    assert hide_in_words((option, "API_TOKEN=planted", "run")) == (option, f"API_TOKEN={HIDDEN}", "run")


@each_row(
    ("text", "shown"),
    [
        ("'a.token=two planted words' is wrong", "'a.token=hidden' is wrong"),
        ("got {'password': 'planted'}. It is", "got {'password': hidden}. It is"),
        ("got {'password': ['planted', 'planted']}", "got {'password': hidden}"),
        ('Write password = "planted".', "Write password = hidden."),
        ("got ['--token', 'planted']", "got ['--token', hidden]"),
        ("run --token planted --quiet", "run --token hidden --quiet"),
        ("a=token=planted, b", "a=token=hidden, b"),
        ("AccountName=a;AccountKey=planted", "AccountName=a;AccountKey=hidden"),
        ("'hubToken:planted' is", "'hubToken:hidden' is"),
        ("pass_word=planted; go on", "pass_word=hidden; go on"),
        ("cannot read https:/me:planted@host/x: no", "cannot read https://host/x: no"),
        ("'https=//me:planted@host/x'", "'https=//host/x'"),
        ("https://host/x?id=1&token=planted: not found", "https://host/x: not found"),
        ("https://host/x?X-Amz-Signature=planted. Give", "https://host/x. Give"),
        ("say Bearer planted1", "say Bearer hidden"),
    ],
)
def test_a_sentence_is_shown_without_secrets(text: str, shown: str) -> None:
    assert hide_secrets(text) == shown
    assert hide_secrets(shown) == shown
    assert str(DataError(text)) == shown


@each_row(
    "text",
    [
        "Write key=value, for example train.phases.0.steps=100.",
        "my.token.toml:2: train.seed: must be a whole number",
        "unknown key 'token'; the keys here are 'password', 'seed'",
        "HF_TOKEN=..., which is the name of a secret",
        "mask_token=[MASK] is not in the vocabulary",
        "HF_TOKEN=$HF_TOKEN is taken from the environment",
        "the token: it is too long",
        "line 1: transformers' run_mlm.py has no --pasword\nline 2: transformers' run_mlm.py has no option --sas",
        "--hub_token needs a value, and --token is none",
        "look at https://host/runs/sea?wsid=/subscriptions/1, which",
        "https://huggingface.co/docs, s3://box/part-?.txt and C:/data",
        "12:30:05 abfs://box@account/x",
    ],
)
def test_a_sentence_without_secrets_stays(text: str) -> None:
    assert hide_secrets(text) == text


def test_values_are_recorded_without_secrets() -> None:
    values = {
        "title": "of https://me:planted@host/x",
        "run": ["go", "--token", "planted"],
        "a": [{"sas": "planted"}, 1],
    }
    assert hide_in_values(values) == {
        "title": "of https://host/x",
        "run": ["go", "--token", HIDDEN],
        "a": [{"sas": HIDDEN}, 1],
    }
