// The proxies of the environment, in the variables that Go programs and curl read. Loads nothing of src/modules.
import type { SourcesConfig } from '../../modules/sources/index.ts';

/** Hosts of this machine never need a proxy. */
const LOOPBACK = 'localhost,127.0.0.0/8,::1';

/** The proxies of the environment; undefined if it names none. */
export function proxiesOf(environment: NodeJS.ProcessEnv): SourcesConfig['proxies'] | undefined {
  const read = (name: string): string => environment[name] || environment[name.toLowerCase()] || '';
  const [httpProxy, httpsProxy] = [read('HTTP_PROXY'), read('HTTPS_PROXY')].map(withScheme);
  return httpProxy === undefined && httpsProxy === undefined
    ? undefined
    : {
        ...(httpProxy === undefined ? {} : { httpProxy }),
        ...(httpsProxy === undefined ? {} : { httpsProxy }),
        noProxy: `${read('NO_PROXY')},${LOOPBACK}`,
      };
}

/** `host:port` is short for `http://host:port`. */
function withScheme(proxy: string): string | undefined {
  return proxy === '' ? undefined : proxy.includes('://') ? proxy : `http://${proxy}`;
}
