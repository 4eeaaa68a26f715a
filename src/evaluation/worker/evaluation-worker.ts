// An evaluation worker: a thread that has all policies, and evaluates one review after the other.
import { parentPort, workerData } from 'node:worker_threads';
import { LocalCapabilities } from '../../engine/capabilities/index.ts';
import { CapabilityClient } from '../capabilities/capability-connection.ts';
import { type FromWorker, type ToWorker, WorkerActivity, type WorkerStart } from '../evaluation-protocol.ts';
import { nativeThreadId } from '../../threads/index.ts';
import { ValidationTimes } from '../validation-times.ts';
import { PolicyEvaluation } from './policy-evaluation.ts';

const start = workerData as WorkerStart;
const activity = new WorkerActivity(start.activity);
const evaluation = new PolicyEvaluation({
  ...start,
  activity,
  validationBudget: new ValidationTimes(start.validationTimes),
  port: new LocalCapabilities(
    new CapabilityClient(start.capabilities, undefined, (isWaiting) => activity.wait(isWaiting)),
    start.isRecorded,
  ),
  log: (entry) => say({ type: 'log', entry }),
});

function say(message: FromWorker): void {
  parentPort?.postMessage(message);
}

parentPort?.on('message', (message: ToWorker) => {
  switch (message.type) {
    case 'reviews':
      for (const review of message.reviews) {
        if (!activity.isWithdrawn(review[0])) {
          // Each answer at once: the next review may hold this thread for as long as its policy is allowed to.
          say(evaluation.review(review));
        }
      }
      break;
    case 'table': {
      const { version, change, numbers } = message;
      say({ type: 'applied', version, ...evaluation.apply(change, numbers) });
      break;
    }
    case 'watched':
      evaluation.applyWatched(message.change);
      break;
    default:
      message satisfies never;
  }
});

say({ type: 'ready', nativeThreadId: nativeThreadId() });
