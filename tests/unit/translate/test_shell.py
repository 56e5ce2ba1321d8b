"""Shell scripts and launchers in front of commands, as far as they are understood."""

import pytest
from tests.rows import each_row

from bertwright.core.errors import RecipeError
from bertwright.translate.launchers import Launch, strip_launchers
from bertwright.translate.shell import parse_script, parse_words


def test_variables_redirections_and_joined_lines() -> None:
    script = """
    # a comment with $(this) in it
    export DATA=/data OUT="my out"
    BATCH=${1:-64}; A=1 run.sh \\
      --batch $BATCH --data ${DATA}/128 --rank $RANK < in > "out file" 2>&1 && tail --x ${NONE:-$DATA}
    """
    first, second = parse_script(script)
    assert first.words == ("run.sh", "--batch", "64", "--data", "/data/128", "--rank", "$RANK")
    assert first.variables == {"DATA": "/data", "OUT": "my out", "BATCH": "64", "A": "1"} and first.line == 4
    assert second.words == ("tail", "--x", "/data") and "A" not in second.variables


def test_a_comment_ends_with_its_line_also_after_a_backslash() -> None:
    (command,) = parse_script("# phase 1 \\\npython run.py --a 1 \\\n  --b 2")
    assert (command.words, command.line) == (("python", "run.py", "--a", "1", "--b", "2"), 2)


def test_quoted_text_is_neither_comment_nor_redirection() -> None:
    line = """run.sh --a "x # y" 'it # 2>z' --b "say \\" # 2<w" p#q \\# r 2>err # it's over"""
    (command,) = parse_script(line)
    assert command.words == ("run.sh", "--a", "x # y", "it # 2>z", "--b", 'say " # 2<w', "p#q", "#", "r")


def test_words_split_by_a_shell_are_unchanged() -> None:
    (command,) = parse_words(["A=b c", "run.sh", "x;y", "$Z"])
    assert command.words == ("run.sh", "x;y", "$Z") and command.variables == {"A": "b c"}
    assert parse_words(["A=1"]) == []


@each_row(
    ("line", "words", "variables"),
    [
        ("env A=b run.sh C=d", "env run.sh C=d", {"A": "b"}),
        ("B=c srun -N 2 env A=b run.sh", "srun -N 2 env run.sh", {"A": "b", "B": "c"}),
        ("sudo -E A=b env B=c python -u x.py", "sudo -E env python -u x.py", {"A": "b", "B": "c"}),
        ("env A=b", "env", {"A": "b"}),
        ("mpirun -x A=b run.sh", "mpirun -x A=b run.sh", {}),
    ],
)
def test_variables_may_follow_what_starts_the_program(line: str, words: str, variables: dict[str, str]) -> None:
    (command,) = parse_words(line.split())
    assert command.words == tuple(words.split()) and command.variables == variables


@each_row(
    ("line", "said"),
    [
        ("run.sh $(nproc)", "line 1: $( needs a shell, but no shell is run. Replace it by its output."),
        ("run.sh `nproc`", "line 1: ` needs a shell"),
        ("run.sh 'open", "line 1: No closing quotation. Close the quote, or join the lines."),
    ],
)
def test_what_only_a_shell_can_know_is_refused(line: str, said: str) -> None:
    with pytest.raises(RecipeError) as error:
        parse_script(line)
    assert str(error.value).startswith(said)


@each_row(
    ("line", "nodes", "processes", "rest"),
    [
        ("python3 -u x.py --a", 1, 1, ("x.py", "--a")),
        ("python -m torch.distributed.launch --nproc_per_node=8 x.py", 1, 8, ("x.py",)),
        ("torchrun --nnodes 2 --nproc-per-node 8 --master_addr h x.py", 2, 8, ("x.py",)),
        ("mpirun --allow-run-as-root -n 16 -x A=b -mca btl tcp python x.py", 1, 16, ("x.py",)),
        ("mpirun -genv A=b -n 4 -genv C d -env E f python x.py", 1, 4, ("x.py",)),
        ("mpiexec -np 32 -ppn 8 python x.py", 4, 8, ("x.py",)),
        ("mpiexec -np 2 -ppn 4 python x.py", 1, 2, ("x.py",)),
        ("srun -N 4 -n 1 python x.py", 1, 1, ("x.py",)),
        ("srun -n 16 --ntasks 8 python x.py", 1, 8, ("x.py",)),
        ("srun -N 4 --ntasks-per-node=8 -n 16 python x.py", 4, 4, ("x.py",)),
        ("deepspeed --num_gpus 4 x.py", 1, 4, ("x.py",)),
        ("ipexrun --distributed --nnodes 4 --nproc_per_node 2 --hostfile h x.py", 4, 2, ("x.py",)),
        ("python -m intel_extension_for_pytorch.cpu.launch --node_id 0 --enable_jemalloc x.py", 1, 1, ("x.py",)),
        ("srun -N 4 --ntasks-per-node=8 bash x.sh 1", 4, 8, ("x.sh", "1")),
        ("accelerate launch --num_processes 8 x.py", 1, 8, ("x.py",)),
        ("deepspeed --include localhost:0,1,3 x.py", 1, 3, ("x.py",)),
        ("deepspeed -i node1:0,1@node2:4,5 --master_port 9 x.py", 2, 2, ("x.py",)),
        ("numactl -N 0 -m 0 nohup bash x.sh", 1, 1, ("x.sh",)),
        ("srun -N2 -n16 -pgpu numactl -N0 -m0 python x.py", 2, 8, ("x.py",)),
        ("srun -n 8 --cpu-bind=none --gpus-per-task 1 --unbuffered -K -u x.py", 1, 8, ("x.py",)),
        ("mpirun --report-bindings -n 8 x.py", 1, 8, ("x.py",)),
        ("mpiexec -n 16 -perhost 8 x.py", 2, 8, ("x.py",)),
        ("torchrun --nproc_per_node 8 -m x.py", 1, 8, ("x.py",)),
        ("accelerate launch -m --num_processes 8 x.py", 1, 8, ("x.py",)),
    ],
)
def test_launchers_say_how_often(line: str, nodes: int, processes: int, rest: tuple[str, ...]) -> None:
    launch, words = strip_launchers(tuple(line.split()))
    assert (launch.nodes, launch.processes, words) == (nodes, processes, rest)


@each_row(
    ("line", "uncounted"),
    [
        ("deepspeed x.py", "deepspeed without --num_gpus"),
        ("deepspeed --num_nodes 2 --hostfile h x.py", "deepspeed without --num_gpus"),
        ("srun -N 2 --ntasks-per-node 1 deepspeed x.py", "deepspeed without --num_gpus"),
        ("accelerate launch --multi_gpu x.py", "accelerate without --num_processes"),
        ("deepspeed --include node1@node2 x.py", "deepspeed without --num_gpus"),
        ("deepspeed --exclude node1:0 x.py", "deepspeed without --num_gpus"),
        ("mpirun --allow-run-as-root python x.py", "mpirun without -n"),
        ("mpirun -ppn 1 deepspeed --num_gpus 8 x.py", None),
        ("srun x.py", "srun without -n"),
        ("srun -p gpu --gpus-per-node 8 python x.py", "srun without -n"),
        ("srun -N 2 --ntasks-per-socket 4 python x.py", "srun without -n"),
        ("srun -p gpu torchrun --nproc_per_node 8 x.py", None),
        ("srun -N 2 x.py", None),
        ("python x.py", None),
    ],
)
def test_processes_that_only_the_machine_counts_are_not_one(line: str, uncounted: str | None) -> None:
    launch, words = strip_launchers(tuple(line.split()))
    assert words == ("x.py",) and (launch.uncounted.option if launch.uncounted else None) == uncounted
    assert (launch.ranks is None) == (uncounted is not None)


@each_row(
    ("line", "said"),
    [
        (
            "torchrun --nproc_per_nod 8 x.py",
            "torchrun: --nproc_per_nod is not known here; did you mean --nproc_per_node? If it does not set the number "
            "of processes, leave it out.",
        ),
        ("srun --zzz x.py", "srun: --zzz is not known here. If it does not set the number of processes, leave it out."),
        ("mpirun -x1 A=b x.py", "mpirun: -x1 is not known here"),
        (
            "mpirun -n $N x.py",
            "mpirun -n $N: the number of processes depends on the machine. Write the number.",
        ),
        ("torchrun --nproc_per_node=gpu x.py", "torchrun --nproc_per_node gpu: the number of processes"),
        (
            "mpirun -n 12 -ppn 8 x.py",
            "mpirun starts 12 processes on nodes of 8, so the nodes would have different numbers",
        ),
        (
            "deepspeed --include node1:0,1@node2:0 x.py",
            "deepspeed --include node1:0,1@node2:0 starts different numbers of processes on the nodes",
        ),
        ("srun -N 4 -n 6 x.py", "srun starts 6 processes over 4 nodes, so the nodes would have different numbers"),
    ],
)
def test_unknown_launcher_options_are_reported(line: str, said: str) -> None:
    with pytest.raises(RecipeError) as error:
        strip_launchers(tuple(line.split()))
    assert str(error.value).startswith(said)


def test_the_machine_is_described_by_every_launcher_in_front() -> None:
    """The innermost that says a number of processes starts them; interpreters say nothing."""
    line = "srun -N 2 -p gpu torchrun --nproc_per_node 4 --role=x python -u x.py"
    launch, rest = strip_launchers(tuple(line.split()))
    assert (launch.nodes, launch.processes, rest) == (2, 4, ("x.py",))
    assert launch.machine == (("p", "gpu"), ("role", "x")) and launch.ranks == 8 and launch.by == "srun"
    assert strip_launchers(("python", "x.py"))[0].by == ""


@each_row(
    ("line", "rest"),
    [
        ("srun -- x.sh -n 3", ("x.sh", "-n", "3")),
        ("accelerate launch --num_processes 2 x.py launch", ("x.py", "launch")),
        ("/usr/bin/python3 x.py", ("x.py",)),
        ("python -m torch.distributed.run x.py --nproc_per_node 9", ("x.py", "--nproc_per_node", "9")),
    ],
)
def test_what_follows_the_launcher_is_the_programs(line: str, rest: tuple[str, ...]) -> None:
    launch, words = strip_launchers(tuple(line.split()))
    assert words == rest and launch.nodes == 1 and launch.processes in (1, 2)


@each_row("count", ["0", "-1", "1.5", "auto", "", "$N"])
def test_a_number_of_processes_is_a_whole_one_above_0(count: str) -> None:
    with pytest.raises(RecipeError, match="Write the number"):
        strip_launchers(("torchrun", f"--nproc_per_node={count}", "x.py"))


@each_row("end", [";", "&&", "||", "|", "|&", "&"])
def test_commands_end_at_an_operator(end: str) -> None:
    assert [command.words for command in parse_script(f"a 1 {end} b 2")] == [("a", "1"), ("b", "2")]


def test_lines_are_counted_where_they_begin() -> None:
    commands = parse_script("a\n\nb \\\n  c \\\n  d\ne; f\ng \\")
    assert [(command.words, command.line) for command in commands] == [
        (("a",), 1), (("b", "c", "d"), 3), (("e",), 6), (("f",), 6), (("g",), 7)
    ]  # fmt: skip


JOB = """\
#!/bin/bash
#SBATCH -N4 --ntasks-per-node 8
#SBATCH -t 12:00:00  # at most
##SBATCH --account=not

#SBATCH --mail-user me@host --output="a b.log" --requeue
module load cuda
#SBATCH --nodes=9
"""


def started(line: str) -> Launch:
    command = parse_script(JOB + line)[-1]
    launch, words = strip_launchers(command.words, command.job)
    assert words == ("x.py",)
    return launch


def test_lines_of_a_job_are_the_defaults_of_srun() -> None:
    launch = started("srun -p gpu python x.py")
    assert (launch.nodes, launch.processes, launch.by) == (4, 8, "srun") and launch.uncounted is None
    assert launch.machine == (
        ("t", "12:00:00"),
        ("mail_user", ""),
        ("output", "a b.log"),
        ("requeue", ""),
        ("p", "gpu"),
    )


def test_options_of_srun_come_before_those_of_the_job() -> None:
    launch = started("srun --nodes 2 --ntasks-per-node=1 -t 9 python x.py")
    assert (launch.nodes, launch.processes) == (2, 1) and dict(launch.machine)["t"] == "9"
    launch = started("srun -n 4 python x.py")
    assert (launch.nodes, launch.processes) == (4, 1)


def test_a_command_that_srun_does_not_start_is_alone_in_its_job() -> None:
    assert started("python x.py") == Launch()


@each_row(
    ("line", "said"),
    [
        ("--nodes=2-4", "#SBATCH --nodes 2-4: the number of processes depends on the machine. Write the number."),
        ("--comment='a", "line 1: No closing quotation. Close the quote."),
    ],
)
def test_mistakes_in_sbatch_lines_are_reported(line: str, said: str) -> None:
    with pytest.raises(RecipeError) as error:
        (command,) = parse_script(f"#SBATCH {line}\nsrun x.py")
        strip_launchers(command.words, command.job)
    assert str(error.value).startswith(said)


@each_row(
    ("typed", "words"),
    [
        ("$OPTS", ("--a", "b", "c", "--d")),
        ("${OPTS} x", ("--a", "b", "c", "--d", "x")),
        ('"$OPTS"', (" --a b\tc --d ",)),
        ("--x=$OPTS.z", ("--x=", "--a", "b", "c", "--d", ".z")),
        ('--x="$TWO" $TWO', ("--x=a b", "a", "b")),
        ("$TWO$TWO", ("a", "ba", "b")),
        ('\'$TWO\' \\$TWO "\\$TWO" "\\\\$TWO"', ("$TWO", "$TWO", "$TWO", "\\a b")),
        ('${NONE:-$TWO} "${NONE:-$TWO}"', ("a", "b", "a b")),
        ('$EMPTY x "" --y=$EMPTY', ("x", "", "--y=$EMPTY")),
        ("$NONE ${NONE}", ("$NONE", "${NONE}")),
    ],
)
def test_unquoted_variables_are_split_into_words_as_by_a_shell(typed: str, words: tuple[str, ...]) -> None:
    script = "OPTS=' --a b\tc --d '\nTWO='a b'\nEMPTY=\n"
    (command,) = parse_script(f"{script}run.sh {typed}")
    assert command.words == ("run.sh", *words)


def test_values_of_assignments_are_not_split() -> None:
    script = "TWO='a b'\nA=$TWO\nexport B=$TWO C=x\nD=$TWO run.sh E=$TWO"
    (command,) = parse_script(script)
    assert command.variables == {"TWO": "a b", "A": "a b", "B": "a b", "C": "x", "D": "a b"}
    assert command.words == ("run.sh", "E=a", "b")
