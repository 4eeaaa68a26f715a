// Flags of a controller that manages the pods, Services and certificates of policy servers.
import { isIP } from 'node:net';
import { type Command, InvalidArgumentError, Option } from 'commander';
import { settingsProblem, DEFAULT_CERTIFICATE_SETTINGS } from '../../lifecycle/index.ts';
import { DEFAULT_EXEMPT_NAMESPACES } from '../../resources/index.ts';
import type { ManagedSettings } from '../../controller/index.ts';
import { durationMs } from '../cluster/duration.ts';
import { usageError } from '../errors.ts';
import { namespaceNames } from '../namespace-names.ts';

/** The longest valid lifetime: 30 years, longer than any certificate should live. Milliseconds. */
const MAX_LIFETIME_MS = 30 * 365 * 24 * 3_600_000;
const MINUTE_MS = 60_000;
const DAY_MS = 24 * 60 * MINUTE_MS;

export interface ManagedFlags {
  readonly managePolicyServers?: true;
  readonly policyServerImage?: string;
  readonly policyServerAddr: string;
  readonly certificates: 'own' | 'external';
  readonly certificatesDir?: string;
  readonly caLifetime: string;
  readonly caOverlap: string;
  readonly certificateLifetime: string;
  readonly exemptNamespaces: readonly string[];
}

export function addManagedFlags(command: Command): Command {
  const { authorityLifetimeMs, leafLifetimeMs, overlapMs } = DEFAULT_CERTIFICATE_SETTINGS;
  return command
    .option(
      '--manage-policy-servers',
      'create the pods, Services, rights and certificates of PolicyServers, and certificates of the controller’s webhook',
    )
    .option('--policy-server-image <image>', 'image of Portcullis, for PolicyServers that name Kubewarden’s')
    .addOption(
      new Option('--policy-server-addr <address>', 'address that pods of policy servers listen on; :: in IPv6 clusters')
        .default('0.0.0.0')
        .argParser(ipAddress),
    )
    .addOption(
      new Option('--certificates <who>', 'who writes the Secrets with certificates: the controller, or another issuer')
        .choices(['own', 'external'])
        .default('own'),
    )
    .option('--certificates-dir <folder>', 'folder for the controller’s own certificates (default: a temporary one)')
    .option('--ca-lifetime <duration>', 'lifetime of the controller’s CA', `${authorityLifetimeMs / DAY_MS}d`)
    .option(
      '--ca-overlap <duration>',
      'how long a new CA is trusted before it signs, and an old one after it stops signing',
      `${overlapMs / MINUTE_MS}m`,
    )
    .option(
      '--certificate-lifetime <duration>',
      'lifetime of the certificates that it signs',
      `${leafLifetimeMs / DAY_MS}d`,
    )
    .addOption(
      new Option('--exempt-namespaces <names>', 'namespaces that policies of the cluster do not apply to')
        .default(DEFAULT_EXEMPT_NAMESPACES, DEFAULT_EXEMPT_NAMESPACES.join())
        .argParser(namespaceNames),
    );
}

/** Undefined without `--manage-policy-servers`. @throws CliError */
export function managedSettings(flags: ManagedFlags): ManagedSettings | undefined {
  if (flags.managePolicyServers !== true) {
    return undefined;
  }
  if (flags.policyServerImage === undefined) {
    throw usageError('--manage-policy-servers needs --policy-server-image', 'Name the image of this version.');
  }
  const time = (text: string, flag: string): number => durationMs(text, flag, MAX_LIFETIME_MS);
  const lifetimes = {
    authorityLifetimeMs: time(flags.caLifetime, '--ca-lifetime'),
    leafLifetimeMs: time(flags.certificateLifetime, '--certificate-lifetime'),
    overlapMs: time(flags.caOverlap, '--ca-overlap'),
  };
  const problem = settingsProblem(lifetimes);
  if (problem !== undefined) {
    throw usageError(problem, 'See --ca-lifetime, --certificate-lifetime and --ca-overlap.');
  }
  const { policyServerImage: image, policyServerAddr: listenAddress, certificates, certificatesDir } = flags;
  return { image, listenAddress, certificates, certificatesDir, lifetimes };
}

function ipAddress(text: string): string {
  if (isIP(text) === 0) {
    throw new InvalidArgumentError(`expected an IP address, got ${JSON.stringify(text)}`);
  }
  return text;
}
