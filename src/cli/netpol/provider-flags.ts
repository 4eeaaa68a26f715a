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
import { CliError, usageError } from '../errors.ts';
import { readSources } from '../module/read-sources.ts';
import { addSignatureFlags, readSignatureFlags, type SignatureFlags } from '../module/signature-flags.ts';
import { addSourceFlags, type SourceFlags } from '../module/source-flags.ts';
import { oneLine } from '../table.ts';
import { readCatalogueFiles } from './catalogue-files.ts';

export interface CatalogueFlags extends SourceFlags, SignatureFlags {
  readonly catalogue?: readonly string[];
}

const REGISTRY = 'registry://';

/** Describes what {@link providersOf} reads. */
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
  let catalogue = builtinCatalogue();
  for (const name of flags.catalogue ?? []) {
    const texts = name.startsWith(REGISTRY) ? [await fromRegistry(name, flags)] : await fromFiles(name, flags);
    catalogue = texts.reduce((known, { text, place }) => extendedBy(known, text, place), catalogue);
  }
  return catalogue;
}

interface CatalogueText {
  readonly text: string;
  readonly place: string;
}

function extendedBy(catalogue: Catalogue, text: string, place: string): Catalogue {
  try {
    return catalogue.extended(parseCatalogue(text, place, catalogue));
  } catch (error) {
    const hint = 'docs/network-policy.md describes the format.';
    throw new CliError(`the catalogue cannot be used:\n${errorText(error)}`, { hint, cause: error });
  }
}

async function fromFiles(name: string, flags: CatalogueFlags): Promise<readonly CatalogueText[]> {
  if ((await readSignatureFlags(flags)) !== undefined) {
    throw usageError(`${name} cannot be verified: only catalogues of registries have signatures`, 'Push it to one.');
  }
  return await readCatalogueFiles(name);
}

async function fromRegistry(name: string, flags: CatalogueFlags): Promise<CatalogueText> {
  const { catalogueReference, pullCatalogue } = await import('./pull-catalogue.ts');
  const reference = catalogueReference(name);
  const [sources, verification] = await Promise.all([readSources(flags), readSignatureFlags(flags)]);
  const { text, pinned, sourceError } = await pullCatalogue(reference, { sources, verification });
  if (sourceError !== undefined) {
    process.stderr.write(`note: using the cached copy of ${reference.shown}: ${oneLine(sourceError.message)}\n`);
  }
  if (reference.manifest === undefined) {
    process.stderr.write(`note: a tag can move; this catalogue is ${pinned}\n`);
  }
  return { text, place: reference.shown };
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
