// `sources.yml`: settings of module sources and their CAs.
import { createHash } from 'node:crypto';
import { ALL_MODULES } from '../../modules/sources/index.ts';
import { ANNOTATIONS, type PolicyServerObject } from '../../resources/index.ts';
import { isTakenOver } from '../grants/tenant-capabilities.ts';

/** An entry of {@link ANNOTATIONS.tenantModules} that adds nothing, because builtin modules are always allowed. */
const BUILTIN_MODULES_ONLY = 'builtin';

/** Key in the ConfigMap, and file name. */
export const SOURCES_FILE = 'sources.yml';

/**
 * The sources of a spec as JSON, which is YAML, in a fixed order: equal sources give equal text. Undefined if there are
 * none.
 */
export function moduleSources({ metadata, spec }: Pick<PolicyServerObject, 'metadata' | 'spec'>): string | undefined {
  const { insecureSources = [], sourceAuthorities = {} } = spec;
  const tenantHosts = tenantModuleHosts(metadata.annotations);
  const modules = tenantModules({ metadata });
  const mirrors = registryMirrors(metadata.annotations);
  const authorities = Object.entries(sourceAuthorities).toSorted(([a], [b]) => (a < b ? -1 : 1));
  if ([insecureSources, authorities, tenantHosts, modules, mirrors].every(({ length }) => length === 0)) {
    return undefined;
  }
  const withData = authorities.map(([host, certificates]) => [
    host,
    certificates.map((data) => ({ type: 'Data', data })),
  ]);
  return JSON.stringify({
    insecure_sources: insecureSources,
    source_authorities: Object.fromEntries(withData) as object,
    // Fields that Kubewarden's file does not have are written only where they say something.
    ...(tenantHosts.length === 0 ? {} : { tenant_hosts: tenantHosts }),
    ...(modules.length === 0 ? {} : { tenant_modules: modules }),
    ...(mirrors.length === 0 ? {} : { mirrors: Object.fromEntries(mirrors) as object }),
  });
}

/** The hosts of the annotation {@link ANNOTATIONS.tenantModuleHosts}, as they are written there. */
export function tenantModuleHosts(annotations: Readonly<Record<string, string>> = {}): readonly string[] {
  return entriesOf(annotations[ANNOTATIONS.tenantModuleHosts]);
}

/**
 * The modules of the annotation {@link ANNOTATIONS.tenantModules}, as they are written there. Without it: none; all, as in
 * Kubewarden, where the PolicyServer was taken over from it.
 */
export function tenantModules({ metadata }: Pick<PolicyServerObject, 'metadata'>): readonly string[] {
  const named = metadata.annotations?.[ANNOTATIONS.tenantModules];
  return named === undefined && isTakenOver({ metadata })
    ? [ALL_MODULES]
    : entriesOf(named).filter((entry) => entry !== BUILTIN_MODULES_ONLY);
}

/** The mirrors of the annotation {@link ANNOTATIONS.registryMirrors} by the host of the registry, as they are written there. */
export function registryMirrors(
  annotations: Readonly<Record<string, string>> = {},
): readonly (readonly [host: string, urls: readonly string[]])[] {
  const mirrors = entriesOf(annotations[ANNOTATIONS.registryMirrors]).map((entry) => {
    const [host = '', ...url] = entry.split('=');
    return { host: host.trim(), url: url.join('=').trim() };
  });
  return [...Map.groupBy(mirrors, ({ host }) => host)].map(([host, all]) => [host, all.map(({ url }) => url)]);
}

/** The entries of a list that is separated by commas. */
function entriesOf(list: string = ''): readonly string[] {
  return list
    .split(',')
    .map((entry) => entry.trim())
    .filter((entry) => entry !== '');
}

/** Changes with the sources, so that pods restart: the process reads them once, at its start. */
export function sourcesHash(sources: string): string {
  return createHash('sha256').update(sources).digest('hex').slice(0, 16);
}
