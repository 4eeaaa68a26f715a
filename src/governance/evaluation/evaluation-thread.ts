// Entry of a thread that evaluates policies: it has no credentials, and no objects but those that it asks for.
import { parentPort } from 'node:worker_threads';
import { nativeThreadId } from '../../threads/index.ts';
import { errorText, parseJson } from '../../values/index.ts';
import { AskedObjects } from './asked-objects.ts';
import { EVALUATIONS } from './evaluation-jobs.ts';
import type { JobAnswer, JobMessage } from './evaluation-lanes.ts';
import { NotYetRead } from './object-questions.ts';

parentPort?.on('message', (job: JobMessage) => {
  const before = cpuMs();
  const answer = answerOf(job);
  parentPort?.postMessage({ ...answer, cpuMs: cpuMs() - before } satisfies JobAnswer);
});
parentPort?.postMessage(nativeThreadId() ?? 'loaded');

function answerOf({ type, input, objects }: JobMessage): Omit<JobAnswer, 'cpuMs'> {
  try {
    // The type of the job says what its input is.
    const evaluate: (input: never, objects: AskedObjects) => unknown = EVALUATIONS[type];
    return { result: JSON.stringify(evaluate(parseJson(input) as never, new AskedObjects(objects))) };
  } catch (error) {
    return error instanceof NotYetRead ? {} : { failure: errorText(error) };
  }
}

function cpuMs(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1_000;
}
