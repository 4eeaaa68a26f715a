// `portcullis apiserver`: the API server of `start` in a process of its own.
import { resolve } from 'node:path';
import { Command } from 'commander';
import { ensureLocalCertificates } from '../../control/certificates/index.ts';
import { roleNames } from '../install/role-names.ts';
import { portNumber } from '../port-flag.ts';
import { certificatesFolder } from './data-folder.ts';
import type { ApiserverFlags } from './run-apiserver.ts';

export function apiserverCommand(): Command {
  return new Command('apiserver')
    .description('the API server of `portcullis start`, which runs it')
    .requiredOption('--data-dir <folder>', 'the data folder of `start`')
    .requiredOption('--port <port>', 'port for the Kubernetes API', portNumber)
    .option('--examples', 'add the example policies to a new cluster')
    .option('--governance', 'whether there are controllers of governance policies', true)
    .option('--no-governance')
    .option('--governance-role <names>', 'ClusterRoles with the rights of Policies', roleNames, [])
    .option('--network-policy-status-subresource', 'serve the status of NetworkPolicy', true)
    .option('--no-network-policy-status-subresource')
    .action(apiserver);
}

async function apiserver(flags: ApiserverFlags): Promise<void> {
  const dataDir = resolve(flags.dataDir);
  const [certificates, { runApiserver }] = await Promise.all([
    ensureLocalCertificates(certificatesFolder(dataDir)),
    // Loaded while certificates are issued.
    import('./run-apiserver.ts'),
  ]);
  await runApiserver({ ...flags, dataDir }, certificates);
}
