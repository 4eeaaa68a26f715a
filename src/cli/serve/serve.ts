// `portcullis serve`: a policy server for production, with the flags and environment variables of Kubewarden's policy server.
import { Command, InvalidArgumentError, Option } from 'commander';
import { DEFAULT_TIMEOUT_SECONDS } from '../../engine/definition/index.ts';
import { LARGEST_MODULE_BYTES, type SourcesConfig } from '../../modules/sources/index.ts';
import { createLog, type Logger } from '../../log/index.ts';
import { MAX_RECORDED_REQUESTS, PolicyServer, type PolicyServerOptions } from '../../server/index.ts';
import { addLogFlags, addMemberFlags, type LogFlags, policyCluster } from '../daemon-flags.ts';
import { CliError, EXIT } from '../errors.ts';
import { isFolder } from '../files-below.ts';
import { portNumber } from '../port-flag.ts';
import { proxiesOf } from '../module/proxy-environment.ts';
import {
  DOCKER_CONFIG_FLAG,
  DOCKER_CONFIG_HELP,
  type SourceFlags,
  SOURCES_FLAG,
  SOURCES_HELP,
} from '../module/source-flags.ts';
import {
  TRUST_FLAG,
  TRUST_HELP,
  VERIFICATION_FLAG,
  VERIFICATION_HELP,
  type VerificationFlags,
} from '../module/verification-flags.ts';
import { REQUESTS_SOCKET } from './requests-socket.ts';
import { addReplicaFlags, type ReplicaFlags, replicaOptions } from './replica-flags.ts';
import { endThreads } from '../../threads/index.ts';
import { commaList } from '../comma-list.ts';
import { stopSignal } from '../signals.ts';
import { report } from '../supervised.ts';
import { wholeNumber } from '../whole-number.ts';

interface ServeFlags extends LogFlags, ReplicaFlags, SourceFlags, VerificationFlags {
  readonly logColor: boolean;
  readonly addr: string;
  readonly port: number;
  readonly operationsAddr?: string;
  readonly readinessProbePort: number;
  readonly workers?: number;
  readonly policyMemory?: number;
  readonly maxModuleSize?: number;
  readonly certFile?: string;
  readonly keyFile?: string;
  readonly clientCaFile?: string;
  readonly policies: string;
  readonly policiesDownloadDir: string;
  readonly policyTimeout: number;
  readonly alwaysAcceptAdmissionReviewsOnNamespace?: string;
  readonly shutdownDelay: number;
  readonly metricsNamespaces?: number;
  readonly recordRequests?: number;
  readonly requestsSocket: string;
}

export function serveCommand(): Command {
  const command = new Command('serve')
    .description(
      'serve the policies of a policies.yml or of a cluster over HTTPS, with the flags of Kubewarden’s policy server',
    )
    .addOption(
      new Option('--policies <file>', 'the policies file; watched').default('policies.yml').env('KUBEWARDEN_POLICIES'),
    )
    .addOption(new Option('--addr <address>', 'address to listen on').default('0.0.0.0').env('KUBEWARDEN_BIND_ADDRESS'))
    .addOption(
      new Option('--port <port>', 'port for admission reviews')
        .default(3000)
        .env('KUBEWARDEN_PORT')
        .argParser(portNumber),
    )
    .addOption(
      new Option(
        '--operations-addr <address>',
        'address of the readiness probe port (default: that of --addr); only operators should reach it',
      ),
    )
    .addOption(
      new Option('--readiness-probe-port <port>', 'port for /livez, /readyz, /metrics and /policies, plain HTTP')
        .default(8081)
        .env('KUBEWARDEN_READINESS_PROBE_PORT')
        .argParser(portNumber),
    )
    .addOption(
      new Option('--workers <count>', 'evaluation threads (default: processors, at least 2)')
        .env('KUBEWARDEN_WORKERS')
        .argParser(count),
    )
    .addOption(
      new Option(
        '--policy-memory <mebibytes>',
        'memory that WebAssembly policies may hold (default: 3/8 of the memory limit of the process)',
      ).argParser(count),
    )
    .addOption(
      new Option(
        '--max-module-size <mebibytes>',
        'largest module of a policy of the cluster, 256 at most; policies of namespaces have 64 (default: 64)',
      ).argParser(moduleSize),
    )
    .addOption(
      new Option('--cert-file <file>', 'PEM certificate; watched (default: plain HTTP)').env('KUBEWARDEN_CERT_FILE'),
    )
    .addOption(new Option('--key-file <file>', 'PEM key of the certificate').env('KUBEWARDEN_KEY_FILE'))
    .addOption(
      new Option(
        '--client-ca-file <files>',
        'PEM CAs that client certificates must come from, separated by commas',
      ).env('KUBEWARDEN_CLIENT_CA_FILE'),
    )
    .addOption(
      new Option('--policies-download-dir <folder>', 'folder for the module cache and the record of served policies')
        .default('.')
        .env('KUBEWARDEN_POLICIES_DOWNLOAD_DIR'),
    )
    .addOption(
      new Option(
        '--metrics-namespaces <count>',
        'metrics have a label for the namespace while there are at most so many, 0 for none (default: 200)',
      )
        .env('PORTCULLIS_METRICS_NAMESPACES')
        .argParser(noneOrMore),
    )
    .addOption(
      new Option(
        '--record-requests <count>',
        `keep the last requests of each policy in memory, without secrets, for rollout preview; at most ${MAX_RECORDED_REQUESTS} (default: none)`,
      )
        .env('PORTCULLIS_RECORD_REQUESTS')
        .argParser(count),
    )
    .addOption(
      new Option('--requests-socket <path>', 'where recorded requests are offered, in a folder of its own')
        .default(REQUESTS_SOCKET)
        .env('PORTCULLIS_REQUESTS_SOCKET'),
    )
    .addOption(new Option(SOURCES_FLAG, SOURCES_HELP).env('KUBEWARDEN_SOURCES_PATH'))
    .addOption(new Option(DOCKER_CONFIG_FLAG, DOCKER_CONFIG_HELP).env('KUBEWARDEN_DOCKER_CONFIG_JSON_PATH'))
    .addOption(new Option(VERIFICATION_FLAG, VERIFICATION_HELP).env('KUBEWARDEN_VERIFICATION_CONFIG_PATH'))
    .addOption(new Option(TRUST_FLAG, TRUST_HELP).env('KUBEWARDEN_SIGSTORE_TRUST_CONFIG_PATH'))
    .addOption(
      new Option('--policy-timeout <seconds>', 'default timeout of a policy')
        .default(DEFAULT_TIMEOUT_SECONDS)
        .env('KUBEWARDEN_POLICY_TIMEOUT')
        .argParser(count),
    )
    .addOption(
      new Option(
        '--always-accept-admission-reviews-on-namespace <name>',
        'allow every request for objects of this namespace',
      ).env('KUBEWARDEN_ALWAYS_ACCEPT_ADMISSION_REVIEWS_ON_NAMESPACE'),
    )
    .option(
      '--shutdown-delay <seconds>',
      'after SIGTERM: keep answering for this time, until load balancers see that it is not ready',
      noneOrMore,
      0,
    );
  addMemberFlags(
    command,
    'that context-aware policies read, and whose policies --policy-server serves (default: none)',
  );
  addLogFlags(addReplicaFlags(command));
  return command
    .addOption(new Option('--no-log-color', 'no colours in text lines'))
    .addOption(new Option('--log-no-color').hideHelp())
    .addOption(new Option('--enable-metrics', 'metrics are always on').hideHelp())
    .addOption(new Option('--continue-on-errors', 'a bad policy never ends the server').hideHelp())
    .addOption(new Option('--ignore-kubernetes-connection-failure').hideHelp())
    .addHelpText(
      'after',
      `
Examples:
  portcullis serve --policies policies.yml --cert-file tls.crt --key-file tls.key
  portcullis serve --policy-server default --in-cluster --cert-file tls.crt --key-file tls.key \\
    --control-cert-file control.crt --control-key-file control.key --control-ca-file ca.crt

Signals: SIGHUP reads the policies file and the certificates again and retries what failed; SIGTERM and SIGINT stop.`,
    )
    .action(serve);
}

async function serve(flags: ServeFlags): Promise<void> {
  const log = createLog({ level: flags.logLevel, format: flags.logFmt, color: flags.logColor && process.stdout.isTTY });
  const server = new PolicyServer({ ...(await serverOptions(flags)), log });
  const stopped = stopSignal(['SIGINT', 'SIGTERM']);
  process.on('SIGHUP', () => void reload(server, log));
  const addresses = await server.start();
  const { policies } = server.policies();
  log.info(
    {
      ...addresses,
      policies: policies.length,
      active: policies.filter(({ phase }) => phase === 'Active').length,
      failed: policies.filter(({ phase }) => phase === 'Error' || phase === 'Degraded').length,
    },
    'policy server ready',
  );
  report({ ready: { ...addresses } });
  log.info({ signal: await stopped }, 'stopping');
  await server.stop();
  log.info('stopped');
  await endThreads();
}

/** On SIGHUP, files are read again and failed loads are retried at once. */
async function reload(server: PolicyServer, log: Logger): Promise<void> {
  log.info({ signal: 'SIGHUP' }, 'reloading');
  await server.reload();
  const { source, policies } = server.policies();
  const failed = policies.filter(({ phase }) => phase === 'Error' || phase === 'Degraded').length;
  log.info(
    { policies: policies.length, failed, ...(source.error === null ? {} : { error: source.error }) },
    'reloaded',
  );
}

/** Loads the parser lazily: the main thread needs no other code of src/modules. */
async function readSources(flags: ServeFlags): Promise<SourcesConfig> {
  const { readServerSources } = await import('../module/read-sources.ts');
  return await readServerSources(flags);
}

/** Loaded lazily, see {@link readSources}. */
async function readVerification(flags: ServeFlags): Promise<Pick<PolicyServerOptions, 'verification' | 'trustRoot'>> {
  const module = await import('../module/read-verification.ts');
  return await module.readVerification(flags);
}

async function serverOptions(flags: ServeFlags): Promise<Omit<PolicyServerOptions, 'log'>> {
  if ((flags.certFile === undefined) !== (flags.keyFile === undefined)) {
    throw new CliError('--cert-file and --key-file must be given together', {
      exitCode: EXIT.usage,
    });
  }
  if (flags.clientCaFile !== undefined && flags.certFile === undefined) {
    throw new CliError('--client-ca-file needs --cert-file and --key-file', { exitCode: EXIT.usage });
  }
  const replica = await replicaOptions(flags);
  if (replica === undefined && (await isFolder(flags.policies))) {
    throw new CliError(`${flags.policies} is a folder: expected a policies file`, {
      exitCode: EXIT.usage,
      hint: 'To serve the manifests in a folder: portcullis start --policies FOLDER',
    });
  }
  const cluster = policyCluster(flags);
  return {
    ...(replica === undefined ? { policiesFile: flags.policies } : { replica }),
    dataDir: flags.policiesDownloadDir,
    host: flags.addr,
    port: flags.port,
    ...(flags.operationsAddr === undefined ? {} : { operationsHost: flags.operationsAddr }),
    operationsPort: flags.readinessProbePort,
    policyTimeoutSeconds: flags.policyTimeout,
    shutdownDelayMs: flags.shutdownDelay * 1000,
    ...(flags.metricsNamespaces === undefined ? {} : { labelledNamespaces: flags.metricsNamespaces }),
    ...(flags.recordRequests === undefined
      ? {}
      : { recording: { most: flags.recordRequests, socket: flags.requestsSocket } }),
    ...(flags.workers === undefined ? {} : { workers: flags.workers }),
    ...(flags.policyMemory === undefined ? {} : { policyMemoryBytes: flags.policyMemory * 2 ** 20 }),
    ...(flags.maxModuleSize === undefined ? {} : { maxModuleBytes: flags.maxModuleSize * 2 ** 20 }),
    ...(flags.certFile === undefined || flags.keyFile === undefined
      ? {}
      : {
          tls: {
            certFile: flags.certFile,
            keyFile: flags.keyFile,
            clientCaFiles: flags.clientCaFile === undefined ? [] : commaList(flags.clientCaFile),
          },
        }),
    ...(cluster === undefined ? {} : { cluster }),
    ...(flags.sourcesPath === undefined &&
    flags.dockerConfigJsonPath === undefined &&
    proxiesOf(process.env) === undefined
      ? {}
      : { sources: await readSources(flags) }),
    ...(flags.verificationPath === undefined && flags.sigstoreTrustConfig === undefined
      ? {}
      : await readVerification(flags)),
    ...(flags.alwaysAcceptAdmissionReviewsOnNamespace === undefined
      ? {}
      : { alwaysAcceptNamespace: flags.alwaysAcceptAdmissionReviewsOnNamespace }),
  };
}

function count(text: string): number {
  return wholeNumber(text, 1);
}

function moduleSize(text: string): number {
  const mebibytes = wholeNumber(text, 1);
  const most = LARGEST_MODULE_BYTES / 2 ** 20;
  if (mebibytes > most) {
    throw new InvalidArgumentError(`expected at most ${most}, got ${text}`);
  }
  return mebibytes;
}

function noneOrMore(text: string): number {
  return wholeNumber(text, 0);
}
