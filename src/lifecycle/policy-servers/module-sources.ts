// `sources.yml`: settings of module sources and their CAs.
import { createHash } from 'node:crypto';
import { ANNOTATIONS, type PolicyServer } from '../../resources/index.ts';

/** Key in the ConfigMap, and file name. */
export const SOURCES_FILE = 'sources.yml';

/**
 * The sources of a spec as JSON, which is YAML, in a fixed order: equal sources give equal text. Undefined if there are
 * none.
 */
export function moduleSources({ metadata, spec }: Pick<PolicyServer, 'metadata' | 'spec'>): string | undefined {
  const { insecureSources = [], sourceAuthorities = {} } = spec;
  const tenantHosts = tenantModuleHosts(metadata.annotations);
  const authorities = Object.entries(sourceAuthorities).toSorted(([a], [b]) => (a < b ? -1 : 1));
  if (insecureSources.length === 0 && authorities.length === 0 && tenantHosts.length === 0) {
    return undefined;
  }
  const withData = authorities.map(([host, certificates]) => [
    host,
    certificates.map((data) => ({ type: 'Data', data })),
  ]);
  return JSON.stringify({
    insecure_sources: insecureSources,
    source_authorities: Object.fromEntries(withData) as object,
    // Absent where it is empty: policy servers of earlier versions do not know it.
    ...(tenantHosts.length === 0 ? {} : { tenant_hosts: tenantHosts }),
  });
}

/** The hosts of the annotation {@link ANNOTATIONS.tenantModuleHosts}, as they are written there. */
export function tenantModuleHosts(annotations: Readonly<Record<string, string>> = {}): readonly string[] {
  return (annotations[ANNOTATIONS.tenantModuleHosts] ?? '')
    .split(',')
    .map((host) => host.trim())
    .filter((host) => host !== '');
}

/** Changes with the sources, so that pods restart: the process reads them once, at its start. */
export function sourcesHash(sources: string): string {
  return createHash('sha256').update(sources).digest('hex').slice(0, 16);
}
