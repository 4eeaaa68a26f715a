// `portcullis start --policies PATH`: a policy server for a policies file or for manifests, without a cluster.
import { resolve } from 'node:path';
import { ensureLocalCertificates } from '../../control/certificates/index.ts';
import { readVerification } from '../module/read-verification.ts';
import { stopSignal } from '../signals.ts';
import { certificatesFolder, resetCommandFor, writeAddress } from './data-folder.ts';
import { pathFromHere } from './path-from-here.ts';
import { hasManifests, policyManifests } from './policy-manifests.ts';
import { headed } from './headed.ts';
import { policyTable } from './policy-table.ts';
import { startLog } from './start-log.ts';
import { startServer } from './start-server.ts';
import type { StartFlags } from './start-flags.ts';
import { startSources } from './start-sources.ts';

/** Runs until a signal stops it. */
export async function startWithFile(flags: StartFlags, policiesFile: string, dataDir: string): Promise<void> {
  const certificates = await ensureLocalCertificates(certificatesFolder(dataDir));
  const stopped = stopSignal();
  const { verification, trustRoot } = await readVerification(flags);
  const log = startLog();
  const isManifests = await hasManifests(policiesFile);
  const { server, admission, operations } = await startServer(flags, certificates, {
    policiesFile,
    ...(isManifests ? { policyManifests: policyManifests(policiesFile, log) } : {}),
    dataDir,
    sources: await startSources(flags),
    ...(verification === undefined ? {} : { verification }),
    ...(trustRoot === undefined ? {} : { trustRoot }),
    log,
  });
  writeAddress(dataDir, admission);
  const rows = [
    ['Reviews', `${admission}/validate/POLICY`],
    ['Status', `${operations}/policies   (also /metrics, /readyz)`],
    [
      'Policies',
      `${pathFromHere(resolve(policiesFile))}   edit it at any time: a valid change serves at once, an invalid one never does`,
    ],
    ['Data', `${pathFromHere(dataDir)}   (\`${resetCommandFor(dataDir)}\` removes it)`],
  ] as const;
  process.stdout.write(`\n${policyTable(server.policies().policies)}\n\n${headed(rows)}\n\nCtrl-C stops.\n`);
  await stopped;
  process.stdout.write('\nStopping…\n');
  await server.stop();
}
