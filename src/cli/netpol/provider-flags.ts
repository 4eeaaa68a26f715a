// The flags that name network providers and extend their catalogue.
import type { Command } from 'commander';
import {
  builtinCatalogue,
  type Catalogue,
  parseCatalogue,
  type ProviderInstance,
  ProviderSupport,
} from '../../engine/network-policy/index.ts';
import { errorText, nearestKey } from '../../values/index.ts';
import { readText } from '../document.ts';
import { CliError, usageError } from '../errors.ts';

export interface CatalogueFlags {
  readonly catalogue?: readonly string[];
}

/** Describes what {@link providersOf} reads. */
export const PROVIDER_HELP = 'a provider and its version, with settings if known: NAME@VERSION,SETTING=VALUE';

/** Adds the flag that {@link readCatalogue} reads. */
export function addCatalogueFlag(command: Command): Command {
  return command.option('--catalogue <file...>', 'files that add providers, or change what is known of them');
}

/** The catalogue of this product with that of files. @throws CliError which lists the mistakes */
export async function readCatalogue({ catalogue: files = [] }: CatalogueFlags): Promise<Catalogue> {
  let catalogue = builtinCatalogue();
  for (const file of files) {
    const text = await readText(file);
    try {
      catalogue = catalogue.extended(parseCatalogue(text, file, catalogue));
    } catch (error) {
      const hint = 'docs/network-policy.md describes the format.';
      throw new CliError(`the catalogue cannot be used:\n${errorText(error)}`, { hint, cause: error });
    }
  }
  return catalogue;
}

/** The providers of flags, such as `cilium@1.15.4,enable-sctp=true`. @throws CliError for wrong usage */
export function providersOf(specs: readonly string[], catalogue: Catalogue): readonly ProviderSupport[] {
  return specs.map((spec) => providerOf(spec, catalogue));
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

function providerOf(spec: string, catalogue: Catalogue): ProviderSupport {
  const [named = '', ...assignments] = spec.split(',');
  const [name = '', ...versions] = named.split('@');
  const provider = catalogue.find(name);
  if (provider === undefined) {
    const nearest = nearestKey(name, catalogue.names);
    const hint = nearest === undefined ? 'portcullis netpol matrix lists all.' : `Did you mean ${nearest}?`;
    throw usageError(`the catalogue has no provider ${JSON.stringify(name)}`, hint);
  }
  const version = versions.join('@');
  const instance: ProviderInstance = { name, settings: settingsOf(assignments, provider.settings, name) };
  return new ProviderSupport(provider, version === '' ? instance : { ...instance, version });
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
