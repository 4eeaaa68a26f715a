// The loader thread: parses policies files, fetches, rewrites and compiles modules, lets policies check their settings.
import { parentPort, workerData } from 'node:worker_threads';
import { nativeThreadId, runInBackground } from '../../threads/index.ts';
import { errorText } from '../../values/index.ts';
import { CapabilityClient } from '../capabilities/capability-connection.ts';
import { WorkerActivity } from '../evaluation-protocol.ts';
import type { FromLoader, LoaderStart, ToLoader } from './loader-lane.ts';
import { PolicyLoading } from './policy-loading.ts';
import { parseEntries, readEntry } from './read-entries.ts';

// Reviews come before loads.
runInBackground(nativeThreadId());
const start = workerData as LoaderStart;
const activity = new WorkerActivity(start.activity);
activity.started(nativeThreadId());
const loading = new PolicyLoading(start, { activity, port: new CapabilityClient(start.capabilities), say });

function say(message: FromLoader): void {
  parentPort?.postMessage(message);
}

parentPort?.on('message', (message: ToLoader) => {
  switch (message.type) {
    case 'parse':
      try {
        say({ type: 'read', seq: message.seq, entries: parseEntries(message.text, message.fileName) });
      } catch (error) {
        say({ type: 'unparsable', seq: message.seq, message: errorText(error) });
      }
      break;
    case 'read':
      say({ type: 'read', seq: message.seq, entries: message.entries.map(readEntry) });
      break;
    case 'load':
      loading.load(message.jobs);
      break;
    case 'keep':
      loading.keep(message.digests);
      break;
    case 'peers':
      loading.fetch.peerAddresses = message.addresses;
      break;
    default:
      message satisfies never;
  }
});
