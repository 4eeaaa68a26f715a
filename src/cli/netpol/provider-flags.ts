// The flags that name network providers and extend their catalogue.
import type { Command } from 'commander';
import {
  type Catalogue,
  type DetectedProviders,
  leastProviderVersion,
  parseProviderVersion,
  type Provider,
  type ProviderInstance,
  ProviderSupport,
} from '../../engine/network-policy/index.ts';
import { nearestKey } from '../../values/index.ts';
import { usageError } from '../errors.ts';
import { readSources } from '../module/read-sources.ts';
import { addSignatureFlags, readSignatureFlags, type SignatureFlags } from '../module/signature-flags.ts';
import { addSourceFlags, type SourceFlags } from '../module/source-flags.ts';
import { loadCatalogue, REGISTRY } from './load-catalogue.ts';

export interface CatalogueFlags extends SourceFlags, SignatureFlags {
  readonly catalogue?: readonly string[];
}

/** Describes what {@link providerOf} reads. */
export const PROVIDER_HELP = 'a provider and its version, with settings if known: NAME@VERSION,SETTING=VALUE';

/** Adds the flags that {@link readCatalogue} reads. */
export function addCatalogueFlag(command: Command): Command {
  return addSourceFlags(
    addSignatureFlags(
      command.option(
        '--catalogue <file...>',
        `add providers, or change what is known of them: files, folders, ${REGISTRY}HOST/REPOSITORY@sha256:…`,
      ),
    ),
  );
}

/** The catalogue of this product with those of files and registries. @throws CliError which lists the mistakes, ModuleError */
export async function readCatalogue(flags: CatalogueFlags): Promise<Catalogue> {
  const names = flags.catalogue ?? [];
  const file = names.find((name) => !name.startsWith(REGISTRY));
  if (file !== undefined && (await readSignatureFlags(flags)) !== undefined) {
    throw usageError(`${file} cannot be verified: only catalogues of registries have signatures`, 'Push it to one.');
  }
  return await loadCatalogue(names, {
    sources: () => readSources(flags),
    verification: () => readSignatureFlags(flags),
    note: (text) => void process.stderr.write(`note: ${text}\n`),
  });
}

/** Every provider of the catalogue, in its newest version. */
export function allProviders(catalogue: Catalogue): readonly ProviderSupport[] {
  return catalogue.providers
    .toSorted((one, other) => (one.name < other.name ? -1 : 1))
    .map((provider) => {
      const { name, latest } = provider;
      return new ProviderSupport(provider, latest === undefined ? { name } : { name, version: latest });
    });
}

/**
 * The provider of a flag, such as `cilium@1.15.4,enable-sctp=true`.
 * @param instances providers whose version and settings count where the flag does not name them
 * @throws CliError for wrong usage, also when the answer depends on the version, and none is known
 */
export function providerOf(spec: string, { instances, catalogue }: DetectedProviders): ProviderSupport {
  const { provider, version, assignments } = parsedSpec(spec, catalogue);
  const { name } = provider;
  const before = instances.find((one) => one.name === name);
  if (version === undefined && before?.version === undefined && dependsOnVersion(provider)) {
    throw usageError(
      `expected a version of ${name}: what it does with NetworkPolicies depends on it`,
      `As in: --provider ${name}@${provider.latest ?? '1.0.0'}`,
    );
  }
  return new ProviderSupport(provider, {
    ...before,
    name,
    settings: { ...before?.settings, ...settingsOf(assignments, provider.settings, name) },
    ...(version === undefined ? {} : { version }),
  });
}

/** As {@link providerOf}, without a version for all versions. */
export function providerToShow(spec: string, catalogue: Catalogue): ProviderSupport {
  const { provider, version, assignments } = parsedSpec(spec, catalogue);
  const { name, settings } = provider;
  const instance: ProviderInstance = { name, settings: settingsOf(assignments, settings, name) };
  return new ProviderSupport(provider, version === undefined ? instance : { ...instance, version });
}

interface ParsedSpec {
  readonly provider: Provider;
  readonly version: string | undefined;
  readonly assignments: readonly string[];
}

function parsedSpec(spec: string, catalogue: Catalogue): ParsedSpec {
  const [named = '', ...assignments] = spec.split(',');
  const [name = '', ...versions] = named.split('@');
  const provider = catalogue.find(name);
  if (provider === undefined) {
    const nearest = nearestKey(name, catalogue.names);
    const hint = nearest === undefined ? 'portcullis netpol matrix lists all.' : `Did you mean ${nearest}?`;
    throw usageError(`the catalogue has no provider ${JSON.stringify(name)}`, hint);
  }
  const version = versions.length === 0 ? undefined : versions.join('@');
  if (version !== undefined && (parseProviderVersion(version) ?? leastProviderVersion(version)) === undefined) {
    const hint = `As in: --provider ${name}@${provider.latest ?? '1.0.0'}`;
    throw usageError(`expected a version of ${name} after "@", got ${JSON.stringify(version)}`, hint);
  }
  return { provider, version, assignments };
}

/** Whether some feature is supported in some versions only. */
function dependsOnVersion({ features }: Provider): boolean {
  return Object.values(features).some((rows) => rows.length > 1);
}

function settingsOf(
  assignments: readonly string[],
  known: ReadonlyMap<string, unknown>,
  provider: string,
): Readonly<Record<string, string>> {
  const pairs = assignments.map((assignment) => {
    const [key = '', ...value] = assignment.split('=');
    if (value.length === 0) {
      throw usageError(
        `expected SETTING=VALUE after the provider, got ${JSON.stringify(assignment)}`,
        'As in: --provider cilium@1.15.4,enable-sctp=true',
      );
    }
    if (!known.has(key)) {
      const names = [...known.keys()].join(', ') || 'none';
      throw usageError(`${provider} has no setting ${JSON.stringify(key)} in the catalogue`, `Its settings: ${names}`);
    }
    return [key, value.join('=')] as const;
  });
  return Object.fromEntries(pairs);
}
