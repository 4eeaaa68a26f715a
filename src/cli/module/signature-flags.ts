// Flags of commands that verify signatures before they use a module, as kwctl has them.
import { type Command, InvalidArgumentError, Option } from 'commander';
import {
  isGithubOwner,
  isGithubRepository,
  parsePublicKey,
  parseVerification,
  type SignatureRequirement,
  type Verification,
  type VerificationConfig,
  verificationOf,
} from '../../modules/index.ts';
import { readText } from '../document.ts';
import { CliError, usageError } from '../errors.ts';
import { readTrustRoot } from './read-verification.ts';
import { TRUST_FLAG, TRUST_HELP } from './verification-flags.ts';

/** Flags that say who must have signed. */
export interface RequirementFlags {
  readonly verificationKey?: readonly string[];
  readonly verificationAnnotation?: Readonly<Record<string, string>>;
  readonly certEmail?: string;
  readonly certOidcIssuer?: string;
  readonly githubOwner?: string;
  readonly githubRepo?: string;
}

export interface SignatureFlags extends RequirementFlags {
  readonly verificationConfigPath?: string;
  readonly sigstoreTrustConfig?: string;
}

const CONFIG_FLAG = '--verification-config-path';

export function addSignatureFlags(command: Command): Command {
  return addRequirementFlags(
    command.option(`${CONFIG_FLAG} <file>`, 'verification.yml: signatures that modules of registries must have'),
  ).option(TRUST_FLAG, TRUST_HELP);
}

export function addRequirementFlags(command: Command): Command {
  return command
    .addOption(
      new Option('-k, --verification-key <file>', 'public key that must have signed; may be repeated').argParser(
        repeated,
      ),
    )
    .addOption(
      new Option(
        '-a, --verification-annotation <key=value>',
        'annotation of each signature; may be repeated',
      ).argParser(annotation),
    )
    .option('--cert-email <address>', 'e-mail address in the certificate of a keyless signature')
    .option('--cert-oidc-issuer <url>', 'issuer in the certificate of a keyless signature')
    .option('--github-owner <name>', 'owner of the GitHub repository whose workflow must have signed')
    .option('--github-repo <name>', 'that repository');
}

/**
 * What the flags ask for; undefined if they ask for nothing.
 * @throws CliError, ModuleError `verification-invalid`, `trust-root-invalid`
 */
export async function readSignatureFlags(flags: SignatureFlags): Promise<Verification | undefined> {
  const { verificationConfigPath: path } = flags;
  const given = await readRequirementFlags(flags);
  if (path !== undefined && given.length > 0) {
    throw usageError(`${CONFIG_FLAG} cannot be combined with other flags on signatures`);
  }
  const config: VerificationConfig | undefined =
    path === undefined
      ? given.length === 0
        ? undefined
        : { allOf: given }
      : parseVerification(await readText(path), path);
  const trustRoot = await readTrustRoot(flags.sigstoreTrustConfig);
  return config === undefined ? undefined : verificationOf(config, trustRoot);
}

/** One requirement for each key, issuer and owner; each must be satisfied. @throws CliError */
export async function readRequirementFlags(flags: RequirementFlags): Promise<readonly SignatureRequirement[]> {
  const { verificationAnnotation: annotations, certEmail, certOidcIssuer, githubOwner, githubRepo } = flags;
  const more = annotations === undefined ? {} : { annotations };
  const keys = await Promise.all((flags.verificationKey ?? []).map(readKey));
  const requirements: SignatureRequirement[] = keys.map((key) => ({ kind: 'pubKey', key, ...more }));
  if ((certEmail === undefined) !== (certOidcIssuer === undefined)) {
    throw usageError('--cert-email and --cert-oidc-issuer need each other: anybody can be anyone at some issuer');
  }
  if (certEmail !== undefined && certOidcIssuer !== undefined) {
    const subject = { equal: nonEmpty('--cert-email', certEmail) };
    const issuer = nonEmpty('--cert-oidc-issuer', certOidcIssuer);
    requirements.push({ kind: 'genericIssuer', issuer, subject, ...more });
  }
  if (githubOwner === undefined && githubRepo !== undefined) {
    throw usageError('--github-repo needs --github-owner');
  }
  if (githubOwner !== undefined) {
    if (!isGithubOwner(githubOwner) || (githubRepo !== undefined && !isGithubRepository(githubRepo))) {
      throw usageError('--github-owner and --github-repo expect names, the repository without its owner');
    }
    const repo = githubRepo === undefined ? {} : { repo: githubRepo };
    requirements.push({ kind: 'githubAction', owner: githubOwner, ...repo, ...more });
  }
  if (requirements.length === 0 && annotations !== undefined) {
    throw usageError(
      '--verification-annotation says nothing about who must have signed',
      'Add --verification-key, --cert-email and --cert-oidc-issuer, or --github-owner.',
    );
  }
  return requirements;
}

async function readKey(path: string): Promise<string> {
  const key = parsePublicKey(await readText(path));
  if (key === undefined) {
    throw new CliError(`${path} has no public key that can be used`, {
      hint: 'Expected is PEM ("-----BEGIN PUBLIC KEY-----…"): ECDSA, Ed25519, or RSA of at least 2048 bits.',
    });
  }
  return key;
}

function nonEmpty(flag: string, value: string): string {
  if (value === '') {
    throw usageError(`${flag} is empty`);
  }
  return value;
}

function repeated(value: string, others: readonly string[] | undefined): readonly string[] {
  return [...(others ?? []), value];
}

function annotation(text: string, others: Readonly<Record<string, string>> = {}): Readonly<Record<string, string>> {
  const at = text.indexOf('=');
  if (at < 1) {
    throw new InvalidArgumentError('Expected KEY=VALUE.');
  }
  return { ...others, [text.slice(0, at)]: text.slice(at + 1) };
}
