// The modules that namespaced policies may use: those that an administrator names. Code of others can take as much time and
// memory as the limits of a policy allow.
import { ModuleError } from '../reference/errors.ts';
import { type ModuleReference, parseReference } from '../reference/module-reference.ts';

const DIGEST = /^sha256:[0-9a-f]{64}$/;
/** The entry that allows all modules. */
export const ALL_MODULES = '*';
const FORMS = 'registry://host/path, https://host/path, file:///folder, sha256:<64 hex digits>, or * for all';
/** An encoded slash or backslash, which some servers decode before they follow "..". */
const ENCODED_SEPARATOR = /%2f|%5c/i;
/** Entries that a message lists. */
const MAX_LISTED = 5;

/**
 * What is wrong with an entry of a list of modules; undefined for a digest, or a reference to a module or to a place above some.
 */
export function tenantModuleProblem(entry: string): string | undefined {
  return entry === ALL_MODULES || DIGEST.test(entry) || placeOf(entry) !== undefined ? undefined : `expected ${FORMS}`;
}

/**
 * Refuses a module that is not in a list. Digests must be part of the reference: then nobody can change the module. Other
 * entries allow themselves, and all below them.
 * @param allowed valid entries
 * @throws ModuleError `source-forbidden`
 */
export function assertTenantModule(reference: ModuleReference, allowed: readonly string[]): void {
  if (allowed.some((entry) => isAllowed(reference, entry))) {
    return;
  }
  const listed = allowed.slice(0, MAX_LISTED).join(', ');
  const more = allowed.length > MAX_LISTED ? ` and ${allowed.length - MAX_LISTED} more` : '';
  throw new ModuleError(
    'source-forbidden',
    `namespaced policies may use builtin modules${allowed.length === 0 ? '' : `, and ${listed}${more}`}, got ${reference.shown}: use one of these, or have an administrator add it to the annotation portcullis.dev/tenant-modules of the PolicyServer`,
  );
}

function isAllowed(reference: ModuleReference, entry: string): boolean {
  if (entry === ALL_MODULES) {
    return true;
  }
  if (DIGEST.test(entry)) {
    const { digest } = reference;
    return digest === entry || (reference.kind === 'registry' && reference.manifest === entry);
  }
  const [place, allowed] = [placeOfReference(reference), placeOf(entry)];
  return (
    place !== undefined &&
    allowed !== undefined &&
    place.origin === allowed.origin &&
    (allowed.version === undefined || allowed.version === place.version) &&
    allowed.path.every((segment, index) => segment === place.path[index]) &&
    (allowed.version === undefined || allowed.path.length === place.path.length)
  );
}

/** Where a module is, in parts that can be compared. */
interface Place {
  readonly origin: string;
  readonly path: readonly string[];
  /** Tag or digest in a registry. */
  readonly version: string | undefined;
}

/** The place of an entry; undefined if it is malformed. */
function placeOf(entry: string): Place | undefined {
  const text = entry.replace(/\/+$/, '');
  // A host alone is no reference.
  const host = /^(registry|https?):\/\/[^/?#@\s]+$/i.exec(text);
  try {
    const place = placeOfReference(parseReference(host === null ? text : `${text}/x`), text);
    return place !== undefined && host !== null ? { ...place, path: [], version: undefined } : place;
  } catch {
    return undefined;
  }
}

/** @param written the reference as it was written. Default: all of its parts count */
function placeOfReference(reference: ModuleReference, written?: string): Place | undefined {
  switch (reference.kind) {
    case 'registry': {
      const { host, repository, tag, manifest } = reference;
      // An entry without a version allows all versions.
      const isVersioned = written === undefined || /[:@][^/]*$/.test(written.slice('registry://'.length + host.length));
      const version = isVersioned ? (manifest ?? tag) : undefined;
      return { origin: `registry://${host}`, path: repository.split('/'), version };
    }
    case 'http': {
      const { origin, pathname } = reference.url;
      return ENCODED_SEPARATOR.test(pathname) ? undefined : { origin, path: segments(pathname), version: undefined };
    }
    case 'file':
      return { origin: 'file:', path: segments(reference.path), version: undefined };
    default:
      return reference satisfies never;
  }
}

function segments(path: string): readonly string[] {
  return path.split('/').filter((segment) => segment !== '');
}
