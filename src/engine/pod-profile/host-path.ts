import { describeValue } from '../values/field-reader.ts';
import type { FieldReader } from '../values/field-reader.ts';
import { readMappings } from './read-list.ts';

/** A path of the node, and everything below it, that pods may mount. */
export interface AllowedHostPath {
  /** The names in its prefix, as Linux and as Windows read it; undefined when there it is not absolute. */
  readonly names: PathNames;
  readonly windowsNames: PathNames;
  /** Whether containers may only read it. */
  readonly readOnly: boolean;
}

/** The names in an absolute path; undefined for other paths. */
type PathNames = readonly string[] | undefined;

/** What pods may do with a path of the node. */
export type HostPathAccess = 'none' | 'read' | 'write';

/** The access to a path: that of the allowed prefix that grants most, as in PodSecurityPolicy. */
export function hostPathAccess(
  path: string,
  allowed: readonly AllowedHostPath[] | undefined,
  isWindows: boolean,
): HostPathAccess {
  if (allowed === undefined) {
    return 'write';
  }
  const names = pathNames(path, isWindows);
  const matching = allowed.filter((prefix) => isBelow(names, isWindows ? prefix.windowsNames : prefix.names));
  return matching.length === 0 ? 'none' : matching.every(({ readOnly }) => readOnly) ? 'read' : 'write';
}

/** Whether a path has `..` among its names. Windows reads names that consist of dots and spaces like it. */
export function goesUp(path: string, isWindows: boolean): boolean {
  return isWindows ? path.split(/[/\\]/).some((name) => /^[. ]{2,}$/.test(name)) : path.split('/').includes('..');
}

/**
 * The names in an absolute path, without empty ones and `.`; undefined when it is relative or goes up. Windows
 * separates by `\` as well, and ignores case.
 */
function pathNames(path: string, isWindows: boolean): PathNames {
  const text = isWindows ? path.replaceAll('\\', '/').toLowerCase() : path;
  const isAbsolute = text.startsWith('/') || (isWindows && /^[a-z]:(?:\/|$)/.test(text));
  return isAbsolute && !goesUp(text, isWindows)
    ? text.split('/').filter((name) => name !== '' && name !== '.')
    : undefined;
}

function isBelow(names: PathNames, prefix: PathNames): boolean {
  return names !== undefined && prefix !== undefined && prefix.every((name, index) => name === names[index]);
}

/** Undefined, without the list: any path. An empty list allows none. */
export function readHostPaths(fields: FieldReader): readonly AllowedHostPath[] | undefined {
  return readMappings(fields, 'allowedHostPaths', ['pathPrefix', 'readOnly'])?.map((mapping) => {
    const pathPrefix = mapping.requiredText('pathPrefix');
    const [names, windowsNames] = [pathNames(pathPrefix, false), pathNames(pathPrefix, true)];
    if (pathPrefix !== '' && names === undefined && windowsNames === undefined) {
      mapping.fault('pathPrefix', `expected an absolute path without "..", got ${describeValue(pathPrefix)}`);
    }
    return { names, windowsNames, readOnly: mapping.boolean('readOnly') ?? false };
  });
}
