// Sources that modules of namespaced policies must not come from: files of the policy server, and hosts that only the policy
// server can reach (SSRF).
import { lookup as systemLookup } from 'node:dns';
import type { LookupFunction } from 'node:net';
import { isAbsolute, relative } from 'node:path';

import { ModuleError } from '../reference/errors.ts';
import type { FileReference } from '../reference/module-reference.ts';
import { isPrivateHost, isPublicAddress } from './public-address.ts';
import type { RegistryMirror, SourcesConfig } from './sources.ts';

/** Time for the lookup of a name that a proxy looks up as well; many networks with proxies know no other names. Milliseconds. */
const PROXIED_LOOKUP_MS = 2_000;

/** Whether a file is below a folder; both absolute. Symbolic links are not resolved. */
function isInside(path: string, folder: string): boolean {
  const way = relative(folder, path);
  return way !== '' && way !== '..' && !way.startsWith('../') && !isAbsolute(way);
}

/** @throws ModuleError `source-forbidden` */
export function assertTenantFile({ path, shown }: FileReference, folder: string | undefined): void {
  if (folder === undefined || !isInside(path, folder)) {
    throw new ModuleError(
      'source-forbidden',
      `namespaced policies cannot name files of the policy server (${shown}): use https:// or a builtin module, or make it a cluster-wide policy`,
    );
  }
}

/**
 * Sources for content that a tenant gets: without credentials, and only with mirrors whose hosts tenants may use. Otherwise the
 * tenant could read what only the policy server may read.
 */
export function anonymousSources({ dockerConfig: _dockerConfig, ...sources }: SourcesConfig): SourcesConfig {
  const isForTenants = (mirror: RegistryMirror): boolean =>
    mirror.kind === 'registry' && sources.tenantHosts.includes(new URL(mirror.origin).host);
  const mirrors = [...sources.mirrors].map(([host, all]) => [host, all.filter(isForTenants)] as const);
  return { ...sources, mirrors: new Map(mirrors) };
}

/**
 * Refuses hosts that are certainly not public. Resolves no names.
 * @param tenantHosts hosts that the administrator allows whatever their addresses: `host`, or `host:port`
 * @param redirectedFrom the reference that redirects to the URL, if one does
 * @throws ModuleError `source-forbidden`
 */
export function assertTenantHost(url: URL, tenantHosts: readonly string[], redirectedFrom?: string): void {
  if (!tenantHosts.includes(url.host) && isPrivateHost(url.hostname)) {
    throw privateHostError(url, redirectedFrom);
  }
}

/**
 * The lookup for a request of a tenant. It checks the very addresses that are connected to, so DNS rebinding does not get
 * around it. Other names, those of proxies, are not checked, see {@link assertProxiedHost}. For the other parameters see
 * {@link assertTenantHost}.
 * @throws ModuleError `source-forbidden` for an address in the URL
 */
export function tenantLookup(
  url: URL,
  tenantHosts: readonly string[],
  redirectedFrom?: string,
  lookup: LookupFunction = systemLookup,
): LookupFunction {
  assertTenantHost(url, tenantHosts, redirectedFrom);
  if (tenantHosts.includes(url.host)) {
    return lookup;
  }
  return (name, options, callback) => {
    lookup(name, { ...options, all: true }, (error, found) => {
      const addresses = Array.isArray(found) ? found : [];
      const [first] = addresses;
      if (error !== null || first === undefined) {
        callback(error ?? Object.assign(new Error(`no address of ${name}`), { code: 'ENOTFOUND' }), '');
      } else if (name === url.hostname && !addresses.every(({ address }) => isPublicAddress(address))) {
        callback(privateHostError(url, redirectedFrom), '');
      } else if (options.all === true) {
        callback(null, addresses);
      } else {
        callback(null, first.address, first.family);
      }
    });
  };
}

/**
 * Refuses a host that a proxy would look up, if its addresses are known here and one of them is not public. A name that is unknown
 * here is left to the proxy.
 * @param lookup of {@link tenantLookup} for this URL
 * @throws ModuleError `source-forbidden`
 */
export async function assertProxiedHost({ hostname }: URL, lookup: LookupFunction): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const timer = setTimeout(resolve, PROXIED_LOOKUP_MS);
  lookup(hostname, { all: true }, (error) => (error instanceof ModuleError ? reject(error) : resolve()));
  await promise.finally(() => clearTimeout(timer));
}

function privateHostError({ host }: URL, redirectedFrom: string | undefined): ModuleError {
  const problem = `${host}, which has a private or special address`;
  const advice = `use a public server, or have an administrator add`;
  const where = `to the annotation portcullis.dev/tenant-module-hosts of the PolicyServer`;
  return redirectedFrom === undefined
    ? new ModuleError(
        'source-forbidden',
        `namespaced policies cannot have modules from ${problem}: ${advice} ${host} ${where}`,
      )
    : new ModuleError(
        'source-forbidden',
        `${redirectedFrom} leads to ${problem}, and namespaced policies cannot have modules from there: ${advice} ${host} ${where}`,
        {
          tenantMessage: `${redirectedFrom} leads to a private or special address, and namespaced policies cannot have modules from there: ${advice} that host ${where}`,
        },
      );
}
