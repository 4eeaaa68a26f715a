// The flags of `portcullis controller`, and the options that they make.
import { Command, InvalidArgumentError, Option } from 'commander';
import { GOVERNANCE_ACCOUNT } from '../../governance/access-rules/index.ts';
import {
  addressList,
  MAX_HISTORY_LIMIT,
  MAX_PROGRESS_DEADLINE_MS,
  MIN_PROGRESS_DEADLINE_MS,
  type RolloutSettings,
  type RolloutStrategy,
} from '../../lifecycle/index.ts';
import { dnsSubdomainProblems } from '../../names/index.ts';
import { durationMs } from '../cluster/duration.ts';
import {
  addControlFlags,
  addLogFlags,
  addMemberFlags,
  addClusterPolicyFlags,
  type ControlFlags,
  type LogFlags,
  type MemberFlags,
  type ClusterPolicyFlags,
  productNamespaceOption,
} from '../daemon-flags.ts';
import { usageError } from '../errors.ts';
import {
  DOCKER_CONFIG_FLAG,
  DOCKER_CONFIG_HELP,
  SOURCES_FLAG,
  SOURCES_HELP,
  type SourceFlags,
} from '../module/source-flags.ts';
import { TRUST_FLAG, TRUST_HELP, VERIFICATION_FLAG, type VerificationFlags } from '../module/verification-flags.ts';
import { errorText } from '../../values/index.ts';
import { commaList } from '../comma-list.ts';
import { portNumber } from '../port-flag.ts';
import { addCopiesFlags, type CopiesFlags } from './copies-flags.ts';
import { addFailingPoliciesFlags, failingPolicies, type FailingPoliciesFlags } from './failing-policies-flags.ts';
import { addGovernanceFlags, type GovernanceFlags, isEnabled } from './governance-flags.ts';
import { addNetworkPolicyFlags, type NetworkPolicyFlags } from './network-policy-flags.ts';
import { addManagedFlags, type ManagedFlags } from './managed-flags.ts';

/** Next to the default port 8081 of a policy server on the same machine. */
const OPERATIONS_PORT = 8082;
/** The placeholder for the name of a PolicyServer in `--policy-server-url`. */
const NAME = '{name}';

export interface ControllerFlags
  extends
    MemberFlags,
    ControlFlags,
    LogFlags,
    ClusterPolicyFlags,
    ManagedFlags,
    CopiesFlags,
    FailingPoliciesFlags,
    GovernanceFlags,
    NetworkPolicyFlags,
    SourceFlags,
    VerificationFlags {
  readonly governanceAccount: string;
  readonly namespace: string;
  readonly leaderElect: boolean;
  readonly exemptGuard: boolean;
  readonly leaseDuration: string;
  readonly policyServerUrl?: string;
  readonly policyServerCaFile?: string;
  readonly rolloutStrategy: RolloutStrategy;
  readonly progressDeadline: string;
  readonly revisionHistoryLimit: number;
  readonly webhookPort?: number;
  readonly webhookAddr: string;
  readonly webhookCertFile?: string;
  readonly webhookKeyFile?: string;
  readonly webhookUrl?: string;
  readonly webhookCaFile?: string;
  readonly webhookClientCaFile?: readonly string[];
  readonly webhookApiServers: readonly string[];
  readonly operationsAddr: string;
  readonly operationsPort: number;
  readonly auditor: boolean;
}

export function controllerCommandWithFlags(): Command {
  const command = new Command('controller').description(
    'roll the policies of a cluster out to its policy servers: revisions, status, webhooks',
  );
  addMemberFlags(command, 'whose policies are rolled out')
    .addOption(productNamespaceOption())
    .option('--leader-elect', 'work only while this process is the leader', true)
    .option('--no-leader-elect', 'do not wait for leadership: no other controller runs')
    .option(
      '--no-exempt-guard',
      'accept PolicyExceptions although no ValidatingAdmissionPolicy asks who may except: nobody else writes to the cluster',
    )
    .option('--lease-duration <duration>', 'how long other controllers wait for a silent leader', '15s')
    .addOption(
      new Option(
        '--policy-server-url <url>',
        `URL at which the API server reaches a policy server; ${NAME} stands for its name`,
      )
        .conflicts('managePolicyServers')
        .argParser(policyServerUrl),
    )
    .option('--policy-server-ca-file <file>', 'PEM CA of the certificates of those policy servers');
  addClusterPolicyFlags(
    command,
    'of policy servers that it does not manage, so that policies are refused when they are written',
  );
  addNetworkPolicyFlags(
    addGovernanceFlags(addFailingPoliciesFlags(addCopiesFlags(addControlFlags(addManagedFlags(command))))),
  )
    .option(SOURCES_FLAG, SOURCES_HELP)
    .option(DOCKER_CONFIG_FLAG, DOCKER_CONFIG_HELP)
    .option(VERIFICATION_FLAG, 'verification.yml: the signatures that this catalogue must have (default: none)')
    .option(TRUST_FLAG, TRUST_HELP)
    .addOption(
      new Option(
        '--governance-account <name>',
        'service account in the namespace of Portcullis that reads and writes what Policies are about',
      )
        .default(GOVERNANCE_ACCOUNT)
        .argParser(serviceAccountName),
    )
    .addOption(
      new Option(
        '--rollout-strategy <strategy>',
        'at the deadline: serve on replicas that loaded the revision, or wait',
      )
        .choices(['Available', 'AllReplicas'])
        .default('Available'),
    )
    .option('--progress-deadline <duration>', 'how long replicas may take to load a revision', '1m')
    .option('--revision-history-limit <count>', 'revisions kept of each policy besides the one that serves', count, 10)
    .option(
      '--webhook-port <port>',
      'validate policies when they are written, on this port (default: no validation)',
      portNumber,
    )
    .option('--webhook-addr <address>', 'address of that port', '0.0.0.0')
    .option('--webhook-cert-file <file>', 'PEM certificate of that port; watched')
    .option('--webhook-key-file <file>', 'PEM key of the certificate')
    .option('--webhook-url <url>', 'URL at which the API server reaches that port')
    .option('--webhook-ca-file <file>', 'PEM CA of the certificate')
    .option(
      '--webhook-client-ca-file <files>',
      'PEM CAs of the certificates that API servers present; other clients are refused (default: any client)',
      commaList,
    )
    .option(
      '--webhook-api-servers <addresses>',
      'addresses and networks that API servers call from; other clients are refused (default: those of the Service kubernetes, and proven ones, are told more than others)',
      apiServerAddresses,
      [],
    )
    .option('--operations-addr <address>', 'address of the port for operators', '127.0.0.1')
    .option(
      '--operations-port <port>',
      'port for /livez, /readyz and /metrics, plain HTTP',
      portNumber,
      OPERATIONS_PORT,
    )
    .addOption(
      // Charts write the value.
      new Option('--auditor [enabled]', 'an auditor keeps what policies say about existing objects in their statuses')
        .default(true)
        .preset('true')
        .argParser(isEnabled),
    )
    .option('--no-auditor', 'there is none: remove that part of statuses, which nobody keeps current');
  return addLogFlags(command).addHelpText(
    'after',
    `
Example:
  portcullis controller --in-cluster --manage-policy-servers --policy-server-image portcullis:0.1.0 --webhook-port 9443
  portcullis controller --kubeconfig kubeconfig --policy-server-url https://${NAME}.example.org:8443 --policy-server-ca-file ca.crt \\
    --control-cert-file control.crt --control-key-file control.key --control-ca-file ca.crt

Signals: SIGTERM and SIGINT stop; the next controller leads at once.`,
  );
}

/** The defaults of rollouts, which annotations of a policy override. */
export function rolloutSettings(flags: ControllerFlags): RolloutSettings {
  return {
    strategy: flags.rolloutStrategy,
    progressDeadlineMs: progressDeadlineMs(flags.progressDeadline),
    historyLimit: flags.revisionHistoryLimit,
    ...failingPolicies(flags),
  };
}

/** Has the limits of the annotation. */
function progressDeadlineMs(text: string): number {
  const ms = durationMs(text, '--progress-deadline');
  if (ms < MIN_PROGRESS_DEADLINE_MS || ms > MAX_PROGRESS_DEADLINE_MS) {
    throw usageError(`--progress-deadline ${text}: expected a duration from 1s to 24h`);
  }
  return ms;
}

/** Policy servers that the controller does not manage. */
interface RemoteServers {
  readonly urlOf: (name: string) => string;
  readonly caFile: string;
}

/** @throws CliError when the flags are missing */
export function remoteServers({ policyServerUrl: url, policyServerCaFile: caFile }: ControllerFlags): RemoteServers {
  if (url === undefined || caFile === undefined) {
    throw usageError(
      'no policy servers are configured',
      'Let the controller create them with --manage-policy-servers, or name them with --policy-server-url and --policy-server-ca-file.',
    );
  }
  return { urlOf: (name) => url.replaceAll(NAME, encodeURIComponent(name)), caFile };
}

/** The webhook for our own kinds. */
export interface WebhookFlags {
  readonly host: string;
  readonly port: number;
  readonly url: string | undefined;
  /** Undefined when the controller manages the certificates. */
  readonly files: { readonly certFile: string; readonly keyFile: string; readonly caFile: string } | undefined;
  /** CAs of client certificates. Empty: clients need none. */
  readonly clientCaFiles: readonly string[];
  /** Undefined: those that the cluster names. */
  readonly apiServers: readonly string[] | undefined;
}

/**
 * The webhook for our own kinds; undefined without `--webhook-port`.
 * @param isManaged whether the controller manages the certificates
 * @throws CliError
 */
export function webhookFlags(flags: ControllerFlags, isManaged: boolean): WebhookFlags | undefined {
  const { webhookPort: port, webhookCertFile: certFile, webhookKeyFile: keyFile, webhookCaFile: caFile } = flags;
  const files = [certFile, keyFile, caFile];
  const isFileGiven = files.some((file) => file !== undefined);
  if (port === undefined) {
    if (isFileGiven || [flags.webhookUrl, flags.webhookClientCaFile].some((flag) => flag !== undefined)) {
      throw usageError('--webhook-… flags are given without --webhook-port', 'Name the port, or leave them all out.');
    }
    return undefined;
  }
  const { webhookApiServers: apiServers, webhookClientCaFile: clientCaFiles = [] } = flags;
  const shared = {
    host: flags.webhookAddr,
    port,
    url: flags.webhookUrl,
    clientCaFiles,
    apiServers: apiServers.length === 0 ? undefined : apiServers,
  };
  if (isManaged) {
    if (isFileGiven) {
      throw usageError('--webhook-…-file: with --manage-policy-servers the certificates come from Secrets');
    }
    return { ...shared, files: undefined };
  }
  if (certFile === undefined || keyFile === undefined || caFile === undefined) {
    throw usageError('--webhook-port needs --webhook-cert-file, --webhook-key-file and --webhook-ca-file');
  }
  return { ...shared, files: { certFile, keyFile, caFile } };
}

/** API servers only call HTTPS. */
function policyServerUrl(text: string): string {
  const url = URL.parse(text.replaceAll(NAME, 'name'));
  if (url?.protocol !== 'https:' || url.search !== '' || url.hash !== '' || url.username !== '') {
    throw new InvalidArgumentError(`expected https://HOST:PORT, ${NAME} standing for a name, got ${text}`);
  }
  return text.replace(/\/+$/, '');
}

function serviceAccountName(text: string): string {
  const [problem] = dnsSubdomainProblems(text);
  if (problem !== undefined) {
    throw new InvalidArgumentError(`expected the name of a service account: ${problem}`);
  }
  return text;
}

function apiServerAddresses(text: string): readonly string[] {
  const addresses = commaList(text);
  try {
    addressList(addresses);
  } catch (error) {
    throw new InvalidArgumentError(errorText(error));
  }
  return addresses;
}

function count(text: string): number {
  const value = Number(text);
  if (!/^\d{1,4}$/.test(text) || value > MAX_HISTORY_LIMIT) {
    throw new InvalidArgumentError(`expected a whole number from 0 to ${MAX_HISTORY_LIMIT}, got ${text}`);
  }
  return value;
}
