// `portcullis start`: an API server, the controller of its policies, a policy server and an auditor, each in a process of its own.
import { localCertificates } from '../../control/certificates/index.ts';
import { sourcesText } from '../../modules/sources/index.ts';
import { stopSignal } from '../signals.ts';
import { certificatesFolder, forgetTokens, writeSources } from './data-folder.ts';
import { EXAMPLES } from './examples-folder.ts';
import { freePorts } from './free-ports.ts';
import { apiserverRole, type RoleOptions, type StartPorts } from './roles.ts';
import type { StartFlags } from './start-flags.ts';
import { startLog } from './start-log.ts';
import { startSources } from './start-sources.ts';
import { Supervisor } from './supervisor.ts';

/** Runs until a signal stops it. */
export async function startWithCluster(flags: StartFlags, dataDir: string): Promise<void> {
  const stopped = stopSignal();
  const options = await roleOptions(flags, dataDir);
  await using supervisor = new Supervisor(startLog());
  await Promise.race([stopped, startRoles(supervisor, options)]);
  await stopped;
  process.stdout.write('\nStopping…\n');
}

/** Reads the file with sources, which `start` adds to; the processes read the other files. @throws CliError, ModuleError */
async function roleOptions(flags: StartFlags, dataDir: string): Promise<RoleOptions> {
  const sources = await startSources(flags);
  forgetTokens(dataDir);
  return {
    flags,
    dataDir,
    // The API server issues them.
    certificates: localCertificates(certificatesFolder(dataDir)),
    ports: await startPorts(flags),
    modulesDir: flags.examples === true ? EXAMPLES : process.cwd(),
    sourcesFile: writeSources(dataDir, sourcesText(sources)),
  };
}

async function startPorts({ clusterPort, port, operationsPort }: StartFlags): Promise<StartPorts> {
  const after = (count: number): number => (operationsPort === 0 ? 0 : operationsPort + count);
  const [cluster = 0, admission = 0, operations = 0, controllerOperations = 0, auditorOperations = 0] = await freePorts(
    [clusterPort, port, operationsPort, after(1), after(2)],
  );
  return { cluster, admission, operations, controllerOperations, auditorOperations };
}

/** Starts the processes. @throws CliError */
async function startRoles(supervisor: Supervisor, options: RoleOptions): Promise<void> {
  const [{ cluster: url = '', isNew }, { startPolicyRoles }] = await Promise.all([
    supervisor.start(apiserverRole(options)),
    // Loaded while the API server starts.
    import('./policy-roles.ts'),
  ]);
  await startPolicyRoles(supervisor, options, { url, isNew: isNew === 'true' });
}
