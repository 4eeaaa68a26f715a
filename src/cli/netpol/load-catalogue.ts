// The builtin catalogue of network providers with those of files, folders and registries.
import { builtinCatalogue, type Catalogue, parseCatalogue } from '../../engine/network-policy/index.ts';
import type { Verification } from '../../modules/index.ts';
import type { SourcesConfig } from '../../modules/sources/index.ts';
import { errorText } from '../../values/index.ts';
import { CliError } from '../errors.ts';
import { oneLine } from '../table.ts';
import { type CatalogueFile, readCatalogueFiles } from '../module/catalogue-files.ts';

export interface CatalogueOrigins {
  /** Called only for registries. */
  readonly sources: () => Promise<SourcesConfig>;
  /** The signatures that catalogues of registries must have. */
  readonly verification: () => Promise<Verification | undefined>;
  /** Called with what to know although the catalogue is loaded. */
  readonly note: (text: string) => void;
  readonly signal?: AbortSignal;
}

export const REGISTRY = 'registry://';

/**
 * @param names files, folders, and references of registries; later ones replace rows of earlier ones
 * @throws CliError which lists the mistakes, ModuleError
 */
export async function loadCatalogue(names: readonly string[], origins: CatalogueOrigins): Promise<Catalogue> {
  let catalogue = builtinCatalogue();
  for (const name of names) {
    const texts = name.startsWith(REGISTRY) ? [await fromRegistry(name, origins)] : await readCatalogueFiles(name);
    catalogue = texts.reduce((known, { text, place }) => extendedBy(known, text, place), catalogue);
  }
  return catalogue;
}

function extendedBy(catalogue: Catalogue, text: string, place: string): Catalogue {
  try {
    return catalogue.extended(parseCatalogue(text, place, catalogue));
  } catch (error) {
    const hint = 'docs/network-policy.md describes the format.';
    throw new CliError(`the catalogue cannot be used:\n${errorText(error)}`, { hint, cause: error });
  }
}

async function fromRegistry(
  name: string,
  { sources, verification, note, signal }: CatalogueOrigins,
): Promise<CatalogueFile> {
  const { catalogueReference, pullCatalogue } = await import('./pull-catalogue.ts');
  const reference = catalogueReference(name);
  const { text, pinned, sourceError } = await pullCatalogue(reference, {
    sources: await sources(),
    verification: await verification(),
    ...(signal === undefined ? {} : { signal }),
  });
  if (sourceError !== undefined) {
    note(`using the cached copy of ${reference.shown}: ${oneLine(sourceError.message)}`);
  }
  if (reference.manifest === undefined) {
    note(`a tag can move; this catalogue is ${pinned}`);
  }
  return { text, place: reference.shown };
}
