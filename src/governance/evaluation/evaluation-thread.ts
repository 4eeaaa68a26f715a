// Entry of a thread that evaluates policies: it has no credentials, and no objects but those that it asks for.
import { answerJobs, ownCpuMs } from '../../threads/index.ts';
import { errorText, parseJson } from '../../values/index.ts';
import { AskedObjects } from './asked-objects.ts';
import { EVALUATIONS } from './evaluation-jobs.ts';
import type { JobAnswer, JobMessage } from './evaluation-lanes.ts';
import { isTooLarge } from './result-limits.ts';
import { type AskForObject, NotYetRead } from './object-questions.ts';

answerJobs((job: JobMessage, ask: AskForObject): JobAnswer => {
  const before = ownCpuMs();
  const answer = answerOf(job, ask);
  return { ...answer, cpuMs: ownCpuMs() - before };
});

function answerOf({ type, input, foreseen }: JobMessage, ask: AskForObject): Omit<JobAnswer, 'cpuMs'> {
  try {
    // The type of the job says what its input is.
    const evaluate: (input: never, objects: AskedObjects) => unknown = EVALUATIONS[type];
    const result = JSON.stringify(evaluate(parseJson(input) as never, new AskedObjects(foreseen, ask)));
    return isTooLarge(result) ? { isTooLarge: true } : { result };
  } catch (error) {
    return error instanceof NotYetRead ? {} : { failure: errorText(error) };
  }
}
