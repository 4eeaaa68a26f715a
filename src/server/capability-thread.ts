// The capability thread: answers what policies ask of the world, as promises, for threads that sleep until they are kept.
import { parentPort } from 'node:worker_threads';
import { AsyncCapabilities } from '../engine/index.ts';
import type { CapabilityAnswer, CapabilityConnection, CapabilityQuestion } from './capability-connection.ts';
import type { ConnectMessage } from './capability-service.ts';

const capabilities = new AsyncCapabilities({});

/** Answers one question; whatever goes wrong becomes the answer. */
async function answer({ seq, capability, payload }: CapabilityQuestion): Promise<CapabilityAnswer> {
  try {
    return { seq, payload: await capabilities.answer(capability, payload) };
  } catch (error) {
    return { seq, error: error instanceof Error ? error.message : String(error) };
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

parentPort?.on('message', ({ connection, first }: ConnectMessage) => serve(connection, first));
