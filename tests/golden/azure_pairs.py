"""The jobs of two guides for Azure as recipe and place: the Hungarian one, and Azure's own example of GLUE."""

PRESETS = (
    "bert-large",
    "bert-large-deepspeed",
    "bert-base",
    "bert-base-deepspeed",
    "distilbert",
    "distilbert-deepspeed",
)
TASKS = ("cola", "sst2", "mrpc", "qqp", "stsb", "mnli", "qnli", "rte", "wnli")
PAIRS = {
    **{f"glue-{name}": f"azureml azure-glue --place azure-nd96-a100 --nodes 2 preset={name}" for name in PRESETS},
    "hungarian-nc96": "azureml hungarian --place azure-nc96-a100",
    "hungarian-nd96": "azureml hungarian --place azure-nd96-a100",
}
"""A command of each job, as docs/how-to/azure.md has them."""
SERVICES = '--set services=["tensorboard","jupyter","vscode"] --set service_nodes=all train.observers=["tensorboard"]'
"""What the jobs of GLUE can be looked into with, on all machines as in the original."""


def glue_data(task: str) -> str:
    """The files of a task, of a data asset with a folder for each; the vocabulary is learnt from CoLA."""
    return (
        f'--set inputs.task={{key="train.phases.0.data",path="azureml:glue:1",below="{task}"}} '
        '--set inputs.text={key="corpus.source.path",path="azureml:glue:1",below="cola/train*.parquet"}'
    )


HUNGARIAN_DATA = '--set inputs.dump={key="corpus.source",path="azureml:huwiki:1",type="uri_file"}'


def with_data(name: str) -> str:
    """The command with the data that its jobs read."""
    added = f"--out runs/{name} {SERVICES} {glue_data('cola')}" if "glue" in name else HUNGARIAN_DATA
    return f"{PAIRS[name]} {added}"


COMMANDS = {name: with_data(name) for name in PAIRS}
