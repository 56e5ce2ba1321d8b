// Only the latest question is answered: an earlier one is aborted, and what it still answers is dropped.

// {ask, stop}: after `delay` milliseconds without another call, `ask(delay, work, done, failed)` calls `work(signal)`.
export function latest() {
  let current;
  const stop = () => current?.abort();
  const ask = (delay, work, done, failed) => {
    stop();
    const mine = (current = new AbortController());
    const timer = setTimeout(async () => {
      try {
        const answer = await work(mine.signal);
        if (!mine.signal.aborted) done(answer);
      } catch (error) {
        if (!mine.signal.aborted) failed(error);
      }
    }, delay);
    mine.signal.addEventListener("abort", () => clearTimeout(timer));
  };
  return { ask, stop };
}
