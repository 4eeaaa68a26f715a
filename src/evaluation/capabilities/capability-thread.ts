// The capability thread: answers host capabilities asynchronously, for threads that sleep until the answer is there.
import type { ContextAwareResource } from '../../resources/index.ts';
import { parentPort, workerData } from 'node:worker_threads';
import { DEFAULT_CAPABILITY_TIMEOUT_MS } from '../../engine/definition/index.ts';
import { AsyncCapabilities } from '../../engine/capabilities/index.ts';
import type { HostCaller } from '../../engine/capabilities/index.ts';
import {
  ANSWER_MARGIN_MS,
  type CapabilityConnection,
  type CapabilityRequest,
  COUNTER_REQUEST,
  reply,
} from './capability-connection.ts';
import type { CapabilityStart, FromCapabilityThread, ToCapabilityThread } from './capability-service.ts';
import { KindRevisions } from '../cluster-objects/kind-revisions.ts';
import { LazyImages } from './lazy-images.ts';
import { LazyReader } from '../cluster-objects/lazy-reader.ts';
import { parseJson } from '../../values/index.ts';

const { cluster, revisions, sources, trustRoot } = workerData as CapabilityStart;
const say = (message: FromCapabilityThread): void => parentPort?.postMessage(message);
const reader =
  cluster === undefined
    ? undefined
    : new LazyReader(cluster, new KindRevisions(revisions), (entry) => say({ type: 'log', entry }));
const capabilities = new AsyncCapabilities({
  timeoutMs: DEFAULT_CAPABILITY_TIMEOUT_MS - ANSWER_MARGIN_MS,
  images: new LazyImages(sources, trustRoot),
  ...(reader === undefined ? {} : { kubernetes: reader }),
});

async function answer(capability: string, payload: string, caller?: HostCaller): Promise<string> {
  return capability === COUNTER_REQUEST
    ? JSON.stringify(reader?.counterOf(parseJson(payload) as ContextAwareResource) ?? null)
    : await capabilities.answer(capability, payload, caller);
}

function serve(connection: CapabilityConnection, first: CapabilityRequest): void {
  connection.port.on('message', (request: CapabilityRequest) => void reply(connection, request, answer));
  void reply(connection, first, answer);
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
