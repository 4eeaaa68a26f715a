// A thread for tests of JobThread: does what its jobs say.
import { parentPort } from 'node:worker_threads';

parentPort?.on('message', ({ kind, value }: { readonly kind: string; readonly value: unknown }) => {
  switch (kind) {
    case 'loop':
      for (;;) {
        // Endless.
      }
    case 'exit':
      process.exit(1);
    case 'fill': {
      const kept: unknown[] = [];
      for (;;) {
        kept.push(Array.from({ length: 10_000 }, () => ({})));
      }
    }
    default:
      parentPort?.postMessage(value);
  }
});
parentPort?.postMessage('loaded');
