// `sources.yml`: where modules may come from, and whose certificates are taken.
import { createHash } from 'node:crypto';
import { ANNOTATIONS, type PolicyServer } from '../../resources/index.ts';

/** The key of the config map, and the name of the file. */
export const SOURCES_FILE = 'sources.yml';

/**
 * What the process reads of a spec's sources, as JSON, which is YAML: keys in one order, so that the same sources are the same
 * text. Undefined where nothing is said.
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

/** Another one for other sources: the process reads them once, when it starts. */
export function sourcesHash(sources: string): string {
  return createHash('sha256').update(sources).digest('hex').slice(0, 16);
}
