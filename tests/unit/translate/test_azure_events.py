"""TensorBoard looks for events where the command of the job writes them, or the translation says that it does not."""

from tests.rows import each_row

from bertwright.translate.azure_job import of_job
from bertwright.translate.translation import translate

JOB = """\
command: python pretrain_glue.py --output_dir o {option}
compute: azureml:gpu-cluster
services:
  board: {{job_service_type: tensor_board, properties: {{logDir: {shown}}}}}
"""


def told(shown: str, option: str = "--tensorboard_log_dir logs/runs", job: str = JOB) -> list[str]:
    made = translate(of_job(job.format(shown=shown, option=option)), strict=False)
    return [remark for remark in made.remarks if "TensorBoard" in remark]


def test_a_service_that_shows_another_folder_is_named_with_both() -> None:
    (remark,) = told("outputs/runs/", "")
    assert remark.startswith(
        "services.board.logDir outputs/runs/ is not the folder that events are written to, /outputs/runs/ "
        "(--tensorboard_log_dir left at its default), so TensorBoard shows nothing in the original."
    )
    new = JOB.replace("job_service_type", "type").replace("properties: {{logDir: {shown}}}", "log_dir: {shown}")
    (remark,) = told("logs", job=new)
    assert remark.startswith("services.board.log_dir logs is not") and "(--tensorboard_log_dir logs/runs)" in remark


@each_row("shown", ["logs/runs", "logs/runs/", "./logs/runs", "$HOME/runs", "''"])
def test_the_same_folder_and_one_that_only_the_job_knows_are_no_contradiction(shown: str) -> None:
    assert told(shown) == []


def test_folders_of_other_services_are_none_of_tensorboard() -> None:
    assert told("other", job=JOB.replace("tensor_board", "jupyter_lab")) == []
    assert told("other", '--tensorboard_log_dir "$LOGS"') == []
