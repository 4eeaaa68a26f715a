import { X509Certificate } from 'node:crypto';
import { dirname, resolve } from 'node:path';

import { readWholeFile } from '../../files/index.ts';
import { ConfigReader, isAbsent, type Mapping, show, type ValuePath } from './config-reader.ts';
import { ModuleError, systemCode } from '../reference/errors.ts';
import { tenantModuleProblem } from './tenant-modules.ts';

/** A certificate authority: a file (PEM or DER) that is read for every fetch, or PEM text. */
type SourceAuthority =
  | { readonly type: 'Path'; readonly path: string }
  | { readonly type: 'Data'; readonly data: string };

/** Proxies in the form of the variables `http_proxy`, `https_proxy` and `no_proxy`. URLs may hold credentials. */
interface ProxyConfig {
  readonly httpProxy?: string;
  readonly httpsProxy?: string;
  readonly noProxy?: string;
}

/** A place that has the artifacts of a registry. */
export type RegistryMirror =
  | {
      readonly kind: 'registry';
      /** `https://host:port` */
      readonly origin: string;
      /** The beginning of all of its repositories: empty, or with a slash at the end. */
      readonly prefix: string;
      readonly shown: string;
    }
  | {
      /** An OCI layout. */
      readonly kind: 'layout';
      /** Absolute path of the folder, or of a tarball of it. */
      readonly path: string;
      readonly shown: string;
    };

/** The contents of `sources.yml`: how to reach the servers of modules. Plain data. */
export interface SourcesConfig {
  /** Hosts whose certificates are not checked: `host`, or `host:port` for a port other than the default. */
  readonly insecureSources: readonly string[];
  /** Certificate authorities by host, trusted in addition to those of the system. */
  readonly sourceAuthorities: Readonly<Record<string, readonly SourceAuthority[]>>;
  readonly proxies: ProxyConfig;
  /** Mirrors by the host of a registry, in the order in which they are tried before the registry itself. */
  readonly mirrors: ReadonlyMap<string, readonly RegistryMirror[]>;
  /** Hosts that namespaced policies may have modules from whatever their addresses: `host`, or `host:port`. */
  readonly tenantHosts: readonly string[];
  /** The modules that namespaced policies may use besides builtin ones, see {@link tenantModuleProblem}. Default: none. */
  readonly tenantModules?: readonly string[];
  /** Path of a Docker config file with credentials for registries; no key of the file. Default: none. */
  readonly dockerConfig?: string;
}

/** No proxy, the authorities of the system, all certificates checked. */
export const DEFAULT_SOURCES: SourcesConfig = {
  insecureSources: [],
  sourceAuthorities: {},
  proxies: {},
  mirrors: new Map(),
  tenantHosts: [],
};

/** Most mirrors of one registry: each that is down delays every pull. */
const MAX_MIRRORS = 8;

/** Largest `sources.yml`: in a cluster it is in a ConfigMap, which holds 1 MiB. */
const SOURCES_LIMIT_BYTES = 1024 * 1024;

const HOST = /^([a-z0-9._-]+|\[[0-9a-f:.]+\])(:\d{1,5})?$/;

/**
 * Reads the text of a `sources.yml`.
 * @param fileName for messages
 * @param baseDir folder for relative certificate paths. Default: the folder of the file
 * @throws ModuleError `sources-invalid`, with line and column
 */
export function parseSources(
  text: string,
  fileName: string,
  baseDir: string = dirname(resolve(fileName)),
): SourcesConfig {
  const reader = new ConfigReader({ text, fileName, code: 'sources-invalid', maxBytes: SOURCES_LIMIT_BYTES });
  return new SourcesReader(reader, baseDir).read();
}

/** Sources as the text of a `sources.yml` (JSON), with absolute paths. It may hold passwords of proxies. */
export function sourcesText(sources: SourcesConfig): string {
  const { insecureSources, sourceAuthorities, proxies, mirrors, tenantHosts, tenantModules } = sources;
  const shown = [...mirrors].map(([host, places]) => [host, places.map((place) => place.shown)] as const);
  return JSON.stringify({
    insecure_sources: insecureSources,
    source_authorities: sourceAuthorities,
    proxies: { http_proxy: proxies.httpProxy, https_proxy: proxies.httpsProxy, no_proxy: proxies.noProxy },
    mirrors: Object.fromEntries(shown),
    tenant_hosts: tenantHosts,
    tenant_modules: tenantModules,
  });
}

/**
 * The PEM certificates of a host's authorities; undefined when `sources.yml` has none for it.
 * @throws ModuleError `file-unreadable`
 */
export async function authoritiesOf(sources: SourcesConfig, host: string): Promise<readonly string[] | undefined> {
  const authorities = Object.hasOwn(sources.sourceAuthorities, host) ? sources.sourceAuthorities[host] : undefined;
  return authorities === undefined ? undefined : await Promise.all(authorities.map(certificateText));
}

async function certificateText(authority: SourceAuthority): Promise<string> {
  if (authority.type === 'Data') {
    return authority.data;
  }
  try {
    const bytes = await readWholeFile(authority.path);
    return bytes.includes('-----BEGIN CERTIFICATE-----')
      ? bytes.toString('latin1')
      : new X509Certificate(bytes).toString();
  } catch (error) {
    throw new ModuleError(
      'file-unreadable',
      `the certificate authority ${authority.path} of sources.yml cannot be used (${systemCode(error) ?? 'no certificate'}): ` +
        'expected a readable file with a PEM or DER certificate',
      { cause: error },
    );
  }
}

class SourcesReader {
  readonly #config: ConfigReader;
  readonly #baseDir: string;

  constructor(config: ConfigReader, baseDir: string) {
    this.#config = config;
    this.#baseDir = baseDir;
  }

  read(): SourcesConfig {
    const keys = ['insecure_sources', 'source_authorities', 'proxies', 'mirrors', 'tenant_hosts', 'tenant_modules'];
    const root = this.#config.mapping(this.#config.document() ?? {}, [], keys);
    return {
      insecureSources: this.#hosts(root, 'insecure_sources'),
      sourceAuthorities: this.#authorities(root['source_authorities']),
      proxies: this.#proxies(root['proxies']),
      mirrors: this.#mirrors(root['mirrors']),
      tenantHosts: this.#hosts(root, 'tenant_hosts'),
      ...(isAbsent(root['tenant_modules']) ? {} : { tenantModules: this.#tenantModules(root['tenant_modules']) }),
    };
  }

  #hosts(root: Mapping, key: string): readonly string[] {
    return this.#config.list(root[key], [key]).map((host, index) => this.#host(host, [key, index]));
  }

  #tenantModules(value: unknown): readonly string[] {
    return this.#config.list(value, ['tenant_modules']).map((entry, index) => {
      const path = ['tenant_modules', index];
      const text = this.#config.string(entry, path);
      const problem = tenantModuleProblem(text);
      if (problem !== undefined) {
        throw this.#config.error(path, `${problem}, got ${show(text)}`);
      }
      return text;
    });
  }

  #authorities(value: unknown): Record<string, readonly SourceAuthority[]> {
    const hosts = this.#config.mapping(value ?? {}, ['source_authorities']);
    return Object.fromEntries(
      Object.entries(hosts).map(([key, list]) => {
        const path = ['source_authorities', key];
        const authorities = this.#config
          .list(list, path)
          .map((entry, index) => this.#authority(entry, [...path, index]));
        return [this.#host(key, path), authorities];
      }),
    );
  }

  #authority(value: unknown, path: ValuePath): SourceAuthority {
    const entry = this.#config.mapping(value, path, ['type', 'path', 'data']);
    switch (entry['type']) {
      case 'Path':
        this.#config.mapping(value, path, ['type', 'path']);
        return { type: 'Path', path: resolve(this.#baseDir, this.#config.string(entry['path'], [...path, 'path'])) };
      case 'Data': {
        this.#config.mapping(value, path, ['type', 'data']);
        const data = this.#config.string(entry['data'], [...path, 'data']);
        if (!isCertificate(data)) {
          throw this.#config.error([...path, 'data'], 'expected a PEM certificate ("-----BEGIN CERTIFICATE-----…")');
        }
        return { type: 'Data', data };
      }
      default:
        throw this.#config.error([...path, 'type'], `expected Path or Data, got ${show(entry['type'])}`);
    }
  }

  #mirrors(value: unknown): ReadonlyMap<string, readonly RegistryMirror[]> {
    const hosts = this.#config.mapping(value ?? {}, ['mirrors']);
    return new Map(
      Object.entries(hosts).map(([key, list]) => {
        const path = ['mirrors', key];
        const mirrors = this.#config.list(list, path);
        if (mirrors.length > MAX_MIRRORS) {
          throw this.#config.error(path, `expected at most ${MAX_MIRRORS} mirrors, got ${mirrors.length}`);
        }
        return [this.#host(key, path), mirrors.map((mirror, index) => this.#mirror(mirror, [...path, index]))];
      }),
    );
  }

  #mirror(value: unknown, path: ValuePath): RegistryMirror {
    const text = this.#config.string(value, path);
    const layout = /^file:\/\/(?:localhost)?(\/.+|\.{1,2}\/.*)$/i.exec(text)?.[1];
    if (layout !== undefined) {
      const place = resolve(this.#baseDir, layout);
      return { kind: 'layout', path: place, shown: `file://${place}` };
    }
    const url = URL.parse(text);
    const isPlain = url !== null && url.username === '' && url.password === '' && url.search === '' && url.hash === '';
    if (!isPlain || !(url.protocol === 'https:' || url.protocol === 'http:')) {
      // Not printed: it may hold a password.
      throw this.#config.error(
        path,
        'expected https://host, https://host/path, or file:///path of an OCI layout (folder or tarball), without credentials and query',
      );
    }
    const prefix = url.pathname.replace(/^\/+|\/+$/g, '');
    return {
      kind: 'registry',
      origin: url.origin,
      prefix: prefix === '' ? '' : `${prefix}/`,
      shown: `${url.origin}${prefix === '' ? '' : `/${prefix}`}`,
    };
  }

  #proxies(value: unknown): ProxyConfig {
    const proxies = this.#config.mapping(value ?? {}, ['proxies'], ['http_proxy', 'https_proxy', 'no_proxy']);
    const httpProxy = this.#proxyUrl(proxies['http_proxy'], ['proxies', 'http_proxy']);
    const httpsProxy = this.#proxyUrl(proxies['https_proxy'], ['proxies', 'https_proxy']);
    const noProxy = isAbsent(proxies['no_proxy'])
      ? undefined
      : this.#config.string(proxies['no_proxy'], ['proxies', 'no_proxy']);
    return {
      ...(httpProxy === undefined ? {} : { httpProxy }),
      ...(httpsProxy === undefined ? {} : { httpsProxy }),
      ...(noProxy === undefined ? {} : { noProxy }),
    };
  }

  #proxyUrl(value: unknown, path: ValuePath): string | undefined {
    if (isAbsent(value)) {
      return undefined;
    }
    const text = this.#config.string(value, path);
    if (!URL.canParse(text) || !['http:', 'https:'].includes(new URL(text).protocol)) {
      // Not printed: it may hold a password.
      throw this.#config.error(path, 'expected the URL of a proxy (http://host:port)');
    }
    return text;
  }

  #host(value: unknown, path: ValuePath): string {
    const host = this.#config.string(value, path).toLowerCase();
    if (!HOST.test(host)) {
      throw this.#config.error(
        path,
        'expected a host name, optionally with a port (registry.example.com:5000), without scheme or path',
      );
    }
    return host;
  }
}

/** Whether a PEM text begins with a certificate. */
export function isCertificate(pem: string): boolean {
  try {
    return new X509Certificate(pem).raw.length > 0;
  } catch {
    return false;
  }
}
