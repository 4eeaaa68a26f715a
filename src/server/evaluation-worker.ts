// An evaluation worker: holds the policy table, and evaluates one review at a time.
import { parentPort, workerData } from 'node:worker_threads';
import {
  createFailedPolicy,
  createGuest,
  createPolicy,
  evaluate,
  type LoadedPolicy,
  LocalCapabilities,
  type PolicyGuest,
  type PolicyOptions,
  unknownPolicy,
} from '../engine/index.ts';
import { CapabilityClient } from './capability-connection.ts';
import type { CompiledPolicyModule } from './compiled-module.ts';
import {
  type AnswerMessage,
  type FromWorker,
  type ReviewMessage,
  type TableChange,
  type TableEntry,
  type ToWorker,
  WorkerActivity,
  type WorkerStart,
} from './evaluation-protocol.ts';
import { ObservationSender } from './observations.ts';

const start = workerData as WorkerStart;
const activity = new WorkerActivity(start.activity);
const port = new LocalCapabilities(new CapabilityClient(start.capabilities));
const modules = new Map<string, CompiledPolicyModule>();
/** One guest per module, shared by all policies that use it. */
const guests = new Map<string, PolicyGuest>();
const table = new Map<string, LoadedPolicy>();
const observations = new ObservationSender();

function say(message: FromWorker): void {
  parentPort?.postMessage(message);
}

const options: PolicyOptions = {
  port,
  log: ({ policy, level, message, fields }) =>
    say({ type: 'log', entry: { level, message, fields: { policy, ...fields } } }),
  defaultTimeoutSeconds: start.defaultTimeoutSeconds,
  ...(start.alwaysAcceptNamespace === undefined ? {} : { alwaysAcceptNamespace: start.alwaysAcceptNamespace }),
};

function guestOf(digest: string | undefined): PolicyGuest {
  const module = digest === undefined ? undefined : modules.get(digest);
  if (module === undefined) {
    throw new Error(`the module ${digest ?? ''} was not handed over`);
  }
  const guest = guests.get(module.digest) ?? createGuest(module);
  guests.set(module.digest, guest);
  return guest;
}

/** Makes the guest of a module that may be used by a later change only: then that one takes no longer than it has to. */
function makeReady(digest: string): void {
  try {
    guestOf(digest);
  } catch {
    // Told by the first entry that uses it.
  }
}

/** What answers for an entry. One that cannot be taken up, although the loader could, answers as failed. */
function loaded(entry: TableEntry, failures: { id: string; message: string }[]): LoadedPolicy {
  if ('failed' in entry) {
    return createFailedPolicy({ id: entry.id, ...entry.failed }, options);
  }
  try {
    return createPolicy(entry.definition, (reference) => guestOf(entry.digests[reference]), options);
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    const { id, mode, failurePolicy } = entry.definition;
    failures.push({ id, message });
    return createFailedPolicy({ id, message, mode, failurePolicy }, options);
  }
}

function apply(version: number, change: TableChange): void {
  const failures: { id: string; message: string }[] = [];
  for (const module of change.modules) {
    modules.set(module.digest, module);
    makeReady(module.digest);
  }
  for (const id of change.removals) {
    table.delete(id);
  }
  for (const entry of change.upserts) {
    table.set(entry.id, loaded(entry, failures));
  }
  for (const digest of change.retired) {
    modules.delete(digest);
    guests.delete(digest);
  }
  say({ type: 'applied', version, failures });
}

function review([, seq, route, id, body, timedOut]: ReviewMessage): AnswerMessage {
  const started = performance.now();
  const policy = table.get(id);
  if (policy === undefined) {
    const { status, body: text } = unknownPolicy(id);
    return [seq, status, text, null, 0];
  }
  const evaluation = evaluate(policy, body, {
    route,
    ...(timedOut === null ? {} : { timedOut: new Set(timedOut) }),
    entering: (_id, timeoutMs, member) => activity.enter(seq, timeoutMs, member),
    leaving: () => activity.leave(),
  });
  const { status, body: answer, observation } = evaluation;
  return [seq, status, answer, observations.send(observation), performance.now() - started];
}

parentPort?.on('message', (message: ToWorker) => {
  switch (message.type) {
    case 'reviews':
      for (const item of message.reviews) {
        if (!activity.isTakenBack(item[0])) {
          // Each answer at once: the next review may hold this thread for as long as its policy is allowed to.
          say({ type: 'answer', answer: review(item) });
        }
      }
      break;
    case 'table':
      apply(message.version, message.change);
      break;
    default:
      message satisfies never;
  }
});

say({ type: 'ready' });
