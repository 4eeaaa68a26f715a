// The flags of `portcullis auditor`.
import { Command, Option } from 'commander';
import { DEFAULT_EXEMPT_NAMESPACES, REPORT_FORMATS } from '../../resources/index.ts';
import {
  addClusterPolicyFlags,
  addLogFlags,
  addMemberFlags,
  type ClusterPolicyFlags,
  type LogFlags,
  type MemberFlags,
  productNamespaceOption,
} from '../daemon-flags.ts';
import {
  DOCKER_CONFIG_FLAG,
  DOCKER_CONFIG_HELP,
  SOURCES_FLAG,
  SOURCES_HELP,
  type SourceFlags,
} from '../module/source-flags.ts';
import {
  TRUST_FLAG,
  TRUST_HELP,
  VERIFICATION_FLAG,
  VERIFICATION_HELP,
  type VerificationFlags,
} from '../module/verification-flags.ts';
import { namespaceNames } from '../namespace-names.ts';
import { portNumber } from '../port-flag.ts';
import { wholeNumber } from '../whole-number.ts';

/** Next to the default port 8082 of a controller on the same machine. */
const OPERATIONS_PORT = 8083;
/** So that a policy that does not return never occupies all of them. */
const WORKERS = 2;

export interface AuditorFlags extends MemberFlags, LogFlags, ClusterPolicyFlags, SourceFlags, VerificationFlags {
  readonly namespace: string;
  readonly exemptNamespaces: readonly string[];
  /** `served`: OpenReports. */
  readonly reports: keyof typeof REPORT_FORMATS | 'served';
  readonly includeSecrets?: true;
  readonly leaderElect: boolean;
  readonly leaseDuration: string;
  readonly workers: number;
  readonly policyMemory?: number;
  readonly policiesDownloadDir: string;
  readonly operationsAddr: string;
  readonly operationsPort: number;
}

export function auditorCommandWithFlags(): Command {
  const command = new Command('auditor').description(
    'judge the existing objects of a cluster by its policies, and again whenever an object, a policy or what it reads changes',
  );
  addMemberFlags(command, 'whose objects are audited')
    .addOption(productNamespaceOption())
    .addOption(
      new Option('--exempt-namespaces <names>', 'namespaces that policies of the cluster do not apply to')
        .default(DEFAULT_EXEMPT_NAMESPACES, DEFAULT_EXEMPT_NAMESPACES.join())
        .argParser(namespaceNames),
    )
    .addOption(
      new Option('--reports <api>', 'API of the reports that findings are written as, where the cluster serves it')
        // Charts write the value of auditor.reports.
        .choices(['served', ...Object.keys(REPORT_FORMATS)])
        .default('openreports'),
    )
    .option('--include-secrets', 'read Secrets, if a policy is for them')
    .option('--leader-elect', 'share the namespaces of the cluster with other auditors', true)
    .option('--no-leader-elect', 'audit all namespaces: no other auditor runs')
    .option('--lease-duration <duration>', 'after how long others take the namespaces of a silent auditor', '15s')
    .option('--workers <count>', 'evaluation threads', (text) => wholeNumber(text, 1), WORKERS)
    .option(
      '--policy-memory <mebibytes>',
      'memory that WebAssembly policies may hold (default: 3/8 of the memory limit of the process)',
      (text) => wholeNumber(text, 1),
    )
    .option('--policies-download-dir <folder>', 'folder for the module cache', '.')
    .option('--operations-addr <address>', 'address of the port for operators', '127.0.0.1')
    .option(
      '--operations-port <port>',
      'port for /livez, /readyz and /metrics, plain HTTP',
      portNumber,
      OPERATIONS_PORT,
    );
  addClusterPolicyFlags(command, 'as on the policy servers')
    .option(SOURCES_FLAG, SOURCES_HELP)
    .option(DOCKER_CONFIG_FLAG, DOCKER_CONFIG_HELP)
    .option(VERIFICATION_FLAG, VERIFICATION_HELP)
    .option(TRUST_FLAG, TRUST_HELP);
  return addLogFlags(command).addHelpText(
    'after',
    `
Example:
  portcullis auditor --in-cluster
  portcullis auditor --kubeconfig kubeconfig --no-leader-elect --operations-port 9090

Signals: SIGTERM and SIGINT stop; the others take its namespaces at once.`,
  );
}
