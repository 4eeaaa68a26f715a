// The capability thread: answers what policies ask of the world, as promises, for threads that sleep until they are kept.
import { parentPort, workerData } from 'node:worker_threads';
import { AsyncCapabilities, DEFAULT_CAPABILITY_TIMEOUT_MS } from '../../engine/index.ts';
import type { ContextAwareResource } from '../../engine/index.ts';
import { COUNTER_QUESTION } from './capability-connection.ts';
import type { CapabilityAnswer, CapabilityConnection, CapabilityQuestion } from './capability-connection.ts';
import type { CapabilityStart, FromCapabilityThread, ToCapabilityThread } from './capability-service.ts';
import { KindRevisions } from '../cluster-objects/kind-revisions.ts';
import { LazyReader } from '../cluster-objects/lazy-reader.ts';
import { errorText, parseJson } from '../../values/index.ts';

/** Who asks gives up after the default: an answer that says why there is none must be there before. Milliseconds. */
const ANSWER_MARGIN_MS = 200;

const { cluster, revisions } = workerData as CapabilityStart;
const say = (message: FromCapabilityThread): void => parentPort?.postMessage(message);
const reader =
  cluster === undefined
    ? undefined
    : new LazyReader(cluster, new KindRevisions(revisions), (entry) => say({ type: 'log', entry }));
const capabilities = new AsyncCapabilities({
  timeoutMs: DEFAULT_CAPABILITY_TIMEOUT_MS - ANSWER_MARGIN_MS,
  ...(reader === undefined ? {} : { kubernetes: reader }),
});

/** Answers one question; whatever goes wrong becomes the answer. */
async function answer({ seq, capability, payload }: CapabilityQuestion): Promise<CapabilityAnswer> {
  try {
    if (capability === COUNTER_QUESTION) {
      return { seq, payload: JSON.stringify(reader?.counterOf(parseJson(payload) as ContextAwareResource) ?? null) };
    }
    return { seq, payload: await capabilities.answer(capability, payload) };
  } catch (error) {
    return { seq, error: errorText(error) };
  }
}

function serve({ port, answered }: CapabilityConnection, first: CapabilityQuestion): void {
  const count = new Int32Array(answered);
  const reply = (question: CapabilityQuestion): void => {
    void answer(question).then((message) => {
      port.postMessage(message);
      Atomics.add(count, 0, 1);
      Atomics.notify(count, 0);
    });
  };
  port.on('message', reply);
  reply(first);
}

function declare(kinds: readonly ContextAwareResource[]): void {
  void reader?.declare(kinds);
}

parentPort?.on('message', (message: ToCapabilityThread) => {
  switch (message.type) {
    case 'connect':
      serve(message.connection, message.first);
      break;
    case 'declare':
      declare(message.kinds);
      break;
    default:
      message satisfies never;
  }
});
