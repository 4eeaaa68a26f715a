// What the processes of `start` are: commands of this program with their flags.
import { join } from 'node:path';
import type { LocalCertificates } from '../../control/certificates/index.ts';
import { PRODUCT_NAMESPACE } from '../product-namespace.ts';
import { credentialFiles } from './data-folder.ts';
import type { Role } from './role-process.ts';
import type { StartFlags } from './start-flags.ts';

/** The only PolicyServer and its only replica. */
export const POLICY_SERVER = 'default';
const REPLICA = 'local';
/** The host of connections between the processes. */
const HOST = '127.0.0.1';

/** The ports of the processes. */
export interface StartPorts {
  readonly cluster: number;
  readonly admission: number;
  readonly operations: number;
  readonly controllerOperations: number;
  readonly auditorOperations: number;
}

export interface RoleOptions {
  readonly flags: StartFlags;
  readonly dataDir: string;
  readonly certificates: LocalCertificates;
  readonly ports: StartPorts;
  /** The folder of `file://./…` references. */
  readonly modulesDir: string;
  /** The file with the sources of modules. */
  readonly sourcesFile: string;
}

/** What the PolicyServer grants when its processes start. */
export interface Granted {
  readonly capabilities: readonly string[];
  /** Mebibytes. */
  readonly maxModuleSize: number | undefined;
}

export function apiserverRole({ flags, dataDir, ports }: RoleOptions): Role {
  return {
    name: 'apiserver',
    args: [
      'apiserver',
      ...flagWords({
        'data-dir': dataDir,
        port: ports.cluster,
        examples: flags.examples,
        governance: flags.governance,
        'governance-role': flags.governanceRole.join(),
        'network-policy-status-subresource': flags.networkPolicyStatusSubresource,
      }),
    ],
  };
}

export function policyServerRole(options: RoleOptions, granted: Granted): Role {
  const { dataDir, certificates, ports } = options;
  return {
    name: 'policy-server',
    args: [
      'serve',
      ...flagWords({
        kubeconfig: credentialFiles(dataDir).policyServer,
        'policy-server': POLICY_SERVER,
        'replica-name': REPLICA,
        addr: HOST,
        port: ports.admission,
        'readiness-probe-port': ports.operations,
        'cert-file': certificates.certFile,
        'key-file': certificates.keyFile,
        'control-addr': HOST,
        'control-port': 0,
        'policies-download-dir': dataDir,
        'max-module-size': granted.maxModuleSize,
        ...sharedFlags(options, granted),
      }),
    ],
  };
}

export function controllerRole(options: RoleOptions, granted: Granted): Role {
  const { flags, dataDir, certificates, ports } = options;
  const { certFile, keyFile, caFile } = certificates;
  return {
    name: 'controller',
    isBackground: true,
    args: [
      'controller',
      ...flagWords({
        kubeconfig: credentialFiles(dataDir).controller,
        // No other controller runs.
        'leader-elect': false,
        // The module cache of the policy server stays.
        'module-copies': false,
        'policy-server-url': `https://localhost:${ports.admission}`,
        'policy-server-ca-file': caFile,
        // The API server of this process asks nobody, and has one user.
        'exempt-guard': false,
        'webhook-addr': HOST,
        'webhook-port': 0,
        'webhook-cert-file': certFile,
        'webhook-key-file': keyFile,
        'webhook-ca-file': caFile,
        'webhook-client-ca-file': caFile,
        'operations-port': ports.controllerOperations,
        auditor: flags.auditor,
        'degraded-policies': flags.degradedPolicies,
        'unserved-policies': flags.unservedPolicies,
        governance: flags.governance,
        'governance-mode': flags.governanceMode,
        'cluster-name': flags.clusterName,
        'governance-namespaces': flags.governanceNamespaces?.join(),
        'network-policy-status': flags.networkPolicyStatus,
        'network-policy-annotation': flags.networkPolicyAnnotation,
        'network-policy-catalogue': flags.networkPolicyCatalogue,
        ...sharedFlags(options, granted),
      }),
    ],
  };
}

export function auditorRole(options: RoleOptions, granted: Granted): Role {
  const { dataDir, ports } = options;
  return {
    name: 'auditor',
    isBackground: true,
    args: [
      'auditor',
      ...flagWords({
        kubeconfig: credentialFiles(dataDir).auditor,
        // No other auditor runs.
        'leader-elect': false,
        // A second one would cost 60 MiB.
        workers: 1,
        'policies-download-dir': join(dataDir, 'auditor'),
        'operations-port': ports.auditorOperations,
        ...policyFlags(options, granted),
      }),
    ],
  };
}

type FlagValues = Readonly<Record<string, string | number | boolean | undefined>>;

/** Flags of the controller and of the policy server. */
function sharedFlags(options: RoleOptions, granted: Granted): FlagValues {
  const { certificates } = options;
  return {
    'control-cert-file': certificates.controlCertFile,
    'control-key-file': certificates.controlKeyFile,
    'control-ca-file': certificates.caFile,
    ...policyFlags(options, granted),
  };
}

/** Flags of all processes that read policies. */
function policyFlags({ flags, modulesDir, sourcesFile }: RoleOptions, { capabilities }: Granted): FlagValues {
  return {
    namespace: PRODUCT_NAMESPACE,
    'modules-dir': modulesDir,
    'namespaced-policies-capabilities': capabilities.join(),
    'sources-path': sourcesFile,
    'docker-config-json-path': flags.dockerConfigJsonPath,
    'verification-path': flags.verificationPath,
    'sigstore-trust-config': flags.sigstoreTrustConfig,
    'log-level': 'warn',
    'log-fmt': 'text',
  };
}

/** Flags as words of a command line: `--no-NAME` for false, none for undefined. */
function flagWords(values: FlagValues): readonly string[] {
  return Object.entries(values).flatMap(([name, value]) => {
    if (value === undefined) {
      return [];
    }
    return typeof value === 'boolean' ? [value ? `--${name}` : `--no-${name}`] : [`--${name}=${value}`];
  });
}
