/** Credentials of a client. */
export interface ClientCredentials {
  /** Value of the Authorization header. */
  readonly authorization?: string;
  /** PEM. */
  readonly clientCertificate?: { readonly cert: string; readonly key: string };
  /** The impersonated user (`Impersonate-*` headers). */
  readonly impersonate?: ImpersonatedUser;
}

/** An impersonated user. */
export interface ImpersonatedUser {
  readonly user: string;
  readonly uid?: string;
  readonly groups?: readonly string[];
  readonly extra?: Readonly<Record<string, readonly string[]>>;
}

/** A source of credentials: a kubeconfig, a token file, an exec plugin. */
export interface CredentialSource {
  /** For messages: `token file "/…"`, `exec plugin "aws"`. */
  readonly description: string;
  /**
   * The current credentials, cached while they are valid.
   * @throws ClusterError `credentials-failed`
   */
  current(signal?: AbortSignal): Promise<ClientCredentials>;
  /** Drops credentials that the server rejected with 401. True when {@link current} may return others for a retry. */
  dropRefused(credentials: ClientCredentials): boolean;
}

/** A cluster's address, and the credentials for it. */
export interface Connection {
  /** `https://host:port`, with a path if the API has a prefix. `http://` for a local proxy. */
  readonly server: string;
  /** Certificate authorities, PEM. Default: those of Node.js. */
  readonly ca?: string;
  /** Do not verify the server's certificate at all. */
  readonly insecureSkipTlsVerify?: boolean;
  /** The name in the server's certificate, if it is not the host. */
  readonly tlsServerName?: string;
  /** Absent: anonymous. */
  readonly credentials?: CredentialSource;
  /** The source of these settings, for messages: `context "dev" of /home/…`. */
  readonly origin?: string;
}

/** Credentials that never change. */
export function fixedCredentials(credentials: ClientCredentials, description: string): CredentialSource {
  return { description, current: () => Promise.resolve(credentials), dropRefused: () => false };
}

/** A bearer token that never changes. */
export function tokenCredentials(token: string, description = 'a bearer token'): CredentialSource {
  return fixedCredentials({ authorization: `Bearer ${token}` }, description);
}

/** The same credentials, used as another user. Needs the right to impersonate it. */
export function impersonating(source: CredentialSource, impersonate: ImpersonatedUser): CredentialSource {
  const own = new WeakMap<ClientCredentials, ClientCredentials>();
  return {
    description: source.description,
    async current(signal) {
      const credentials = await source.current(signal);
      const both = { ...credentials, impersonate };
      own.set(both, credentials);
      return both;
    },
    dropRefused: (credentials) => source.dropRefused(own.get(credentials) ?? credentials),
  };
}

/** A connection to the same cluster as another user. Needs the right to impersonate it. */
export function connectionAs(connection: Connection, user: ImpersonatedUser): Connection {
  const anonymous = fixedCredentials({}, 'no credentials');
  return { ...connection, credentials: impersonating(connection.credentials ?? anonymous, user) };
}

/** The headers that carry credentials. */
export function credentialHeaders({
  authorization,
  impersonate,
}: ClientCredentials): Record<string, string | string[]> {
  const headers: Record<string, string | string[]> = {};
  if (authorization !== undefined) {
    headers['authorization'] = authorization;
  }
  if (impersonate !== undefined) {
    headers['impersonate-user'] = impersonate.user;
    if (impersonate.uid !== undefined) {
      headers['impersonate-uid'] = impersonate.uid;
    }
    if (impersonate.groups !== undefined && impersonate.groups.length > 0) {
      headers['impersonate-group'] = [...impersonate.groups];
    }
    for (const [key, values] of Object.entries(impersonate.extra ?? {})) {
      headers[`impersonate-extra-${encodeURIComponent(key)}`] = [...values];
    }
  }
  return headers;
}
