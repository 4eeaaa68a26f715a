// Catalogues of network providers in registries. Loaded only when one is named.
import { join } from 'node:path';
import {
  type ModuleError,
  ModuleStore,
  parseReference,
  PROVIDER_CATALOGUE,
  type RegistryReference,
  type Verification,
} from '../../modules/index.ts';
import type { SourcesConfig } from '../../modules/sources/index.ts';
import { MAX_CATALOGUE_LENGTH } from '../../engine/network-policy/index.ts';
import { cacheFolder } from '../cache-folder.ts';
import { CliError, usageError } from '../errors.ts';

export interface CatalogueSource {
  readonly sources: SourcesConfig;
  /** The signatures that the artifact must have. Default: they are not verified. */
  readonly verification?: Verification | undefined;
  readonly signal?: AbortSignal;
}

export interface PulledCatalogue {
  readonly text: string;
  /** The reference with the digest that no later push changes. */
  readonly pinned: string;
  /** Why the registry failed, when the text comes from the cache instead. */
  readonly sourceError?: ModuleError;
}

/** A reference such as `registry://HOST/REPOSITORY@sha256:…`. @throws ModuleError, CliError */
export function catalogueReference(text: string): RegistryReference {
  const reference = parseReference(text);
  if (reference.kind !== 'registry') {
    throw usageError(`${reference.shown} names no catalogue in a registry`, 'Name registry://HOST/REPOSITORY@sha256:…');
  }
  return reference;
}

/** Pulls a catalogue with the cache, the digests and the signatures of modules. @throws ModuleError, CliError */
export async function pullCatalogue(
  reference: RegistryReference,
  { sources, verification, signal }: CatalogueSource,
): Promise<PulledCatalogue> {
  const store = new ModuleStore({
    cacheDir: join(cacheFolder(), 'catalogues'),
    content: PROVIDER_CATALOGUE,
    maxModuleBytes: MAX_CATALOGUE_LENGTH,
    sources,
    ...(verification === undefined ? {} : { verification }),
  });
  const { bytes, manifest, sourceError } = await store.fetch(reference, signal === undefined ? {} : { signal });
  const pinned = `registry://${reference.host}/${reference.repository}@${manifest ?? ''}`;
  return { text: textOf(bytes, pinned), pinned, ...(sourceError === undefined ? {} : { sourceError }) };
}

function textOf(bytes: Uint8Array, name: string): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch (error) {
    throw new CliError(`${name} is not text: expected UTF-8`, { cause: error });
  }
}
