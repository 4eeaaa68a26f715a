// An evaluation worker: holds the policy table, and evaluates one review at a time.
import { parentPort, workerData } from 'node:worker_threads';
import {
  createFailedPolicy,
  createGuest,
  createPolicy,
  evaluate,
  type LoadedPolicy,
  loadBuckets,
  LocalCapabilities,
  MATCH_CONDITIONS,
  type PolicyGuest,
  type PolicyOptions,
  unknownPolicy,
} from '../engine/index.ts';
import { CapabilityClient } from './capability-connection.ts';
import type { CompiledPolicyModule } from './compiled-module.ts';
import {
  type AnswerMessage,
  type BucketReview,
  type FromWorker,
  monotonicNow,
  type NamespacesChange,
  type ReviewMessage,
  type TableChange,
  type TableEntry,
  type ToWorker,
  WorkerActivity,
  type WorkerStart,
} from './evaluation-protocol.ts';
import { NamespaceQuestions } from './namespace-questions.ts';
import { ObservationSender } from './observations.ts';

const start = workerData as WorkerStart;
const activity = new WorkerActivity(start.activity);
const port = new LocalCapabilities(new CapabilityClient(start.capabilities));
const modules = new Map<string, CompiledPolicyModule>();
/** One guest per module, shared by all policies that use it. */
const guests = new Map<string, PolicyGuest>();
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
const questions = new NamespaceQuestions(port);
const policies = new Map<string, LoadedPolicy>();
const buckets = start.hasBuckets === true ? loadBuckets() : undefined;
/** The same policies by bucket. */
const table = buckets && new buckets.PolicyTable({ ...options, port: questions });
/** What policies are called in the activity, by id. */
const numbers = new Map<string, number>();

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

function apply(version: number, change: TableChange, ofUpserts: readonly number[]): void {
  const failures: { id: string; message: string }[] = [];
  for (const module of change.modules) {
    modules.set(module.digest, module);
    makeReady(module.digest);
  }
  for (const id of change.removals) {
    policies.delete(id);
    table?.delete(id);
    numbers.delete(id);
  }
  for (const [index, entry] of change.upserts.entries()) {
    const policy = loaded(entry, failures);
    policies.set(entry.id, policy);
    table?.set(policy, entry.match, entry.alsoIn);
    numbers.set(entry.id, ofUpserts[index] ?? 0);
  }
  for (const digest of change.retired) {
    modules.delete(digest);
    guests.delete(digest);
  }
  say({ type: 'applied', version, failures });
}

/**
 * Kept of the time of a bucket's review for evaluating it once more without the policy that had to be cut off: two pauses of
 * the watchdog, and as long as all its policies usually take by far. Milliseconds.
 */
const SECOND_TRY_MS = 250;

/** How long a policy may take, of the time that is left for the review. */
function timeToEvaluate(leftMs: number): number {
  return Math.max(leftMs - SECOND_TRY_MS, leftMs / 2, 0);
}

function review([, seq, route, id, body, timedOut]: ReviewMessage): AnswerMessage {
  if (route === 'admit') {
    throw new Error('expected how the review of a bucket is to be dealt with');
  }
  const started = performance.now();
  const policy = policies.get(id);
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

function reviewBucket([, seq, , bucket, body, timedOut]: ReviewMessage, how: BucketReview): FromWorker {
  if (buckets === undefined || table === undefined) {
    throw new Error('expected to be told at the start that there are reviews of buckets');
  }
  const started = performance.now();
  /** Time in each policy that was asked, by its id. Milliseconds. */
  const times = new Map<string, number>();
  let asked = '';
  let isGuest = false;
  let enteredAt = 0;
  questions.begin(how.namespaceProblem);
  const admission = buckets.admit(table, bucket, body, {
    ...(timedOut === null ? {} : { timedOut: new Set(timedOut) }),
    ...(how.slow === null ? {} : { slow: new Set(how.slow) }),
    deadlineMs: how.expiresAt - monotonicNow(),
    entering: (id, timeoutMs, member) => {
      asked = member < 0 ? id : id.slice(0, id.indexOf('/'));
      isGuest = member !== MATCH_CONDITIONS;
      questions.isGuestRunning = isGuest;
      const leftMs = how.expiresAt - monotonicNow();
      activity.enter(seq, Math.min(timeoutMs, timeToEvaluate(leftMs)), member, numbers.get(asked));
      enteredAt = performance.now();
    },
    leaving: () => {
      activity.leave();
      questions.isGuestRunning = false;
      if (isGuest) {
        times.set(asked, (times.get(asked) ?? 0) + performance.now() - enteredAt);
      }
    },
  });
  const { unanswered } = questions;
  if (unanswered !== undefined && how.namespaceProblem === null) {
    return { type: 'namespace-unknown', seq, namespace: unanswered };
  }
  if (admission.deferred === true) {
    return { type: 'deferred', seq };
  }
  const { status, body: text, observations: observed } = admission;
  const answer = {
    seq,
    status,
    body: text,
    observations: observed.map((observation) => observations.send(observation)),
    times: observed.map(({ policy }) => {
      // One that changed the object, or saw it changed, may have been asked twice.
      const ms = times.get(policy);
      return ms === undefined ? -1 : ms / observed.filter((other) => other.policy === policy).length;
    }),
    evaluationMs: performance.now() - started,
  };
  return { type: 'bucket', answer };
}

function follow({ isAll, namespaces }: NamespacesChange): void {
  if (isAll) {
    table?.namespaces.replace(namespaces.flatMap(([name, labels]) => (labels === undefined ? [] : [[name, labels]])));
    return;
  }
  for (const [name, labels] of namespaces) {
    if (labels === undefined) {
      table?.namespaces.delete(name);
    } else {
      table?.namespaces.set(name, labels);
    }
  }
}

parentPort?.on('message', (message: ToWorker) => {
  switch (message.type) {
    case 'reviews':
      for (const item of message.reviews) {
        if (!activity.isTakenBack(item[0])) {
          const how = item[6];
          // Each answer at once: the next review may hold this thread for as long as its policy is allowed to.
          say(how === undefined ? { type: 'answer', answer: review(item) } : reviewBucket(item, how));
        }
      }
      break;
    case 'table':
      apply(message.version, message.change, message.numbers);
      break;
    case 'namespaces':
      follow(message.change);
      break;
    default:
      message satisfies never;
  }
});

say({ type: 'ready' });
