/** What proves to an API server who asks. */
export interface Credentials {
  /** Value of the Authorization header. */
  readonly authorization?: string;
  /** PEM. */
  readonly clientCertificate?: { readonly cert: string; readonly key: string };
  /** Whom to act as (`Impersonate-*` headers). */
  readonly impersonate?: Impersonation;
}

/** The user that requests are made as, by one who may impersonate. */
export interface Impersonation {
  readonly user: string;
  readonly uid?: string;
  readonly groups?: readonly string[];
  readonly extra?: Readonly<Record<string, readonly string[]>>;
}

/** Where credentials come from: a kubeconfig, a file that changes, a program. */
export interface CredentialSource {
  /** What it is, for messages: `token file "/…"`, `exec plugin "aws"`. */
  readonly description: string;
  /**
   * Those to use now; kept while they are good.
   * @throws ClusterError `credentials-failed`
   */
  current(signal?: AbortSignal): Promise<Credentials>;
  /** The server refused these with 401: forget them. Whether the next ones may be others, so that asking again makes sense. */
  refused(credentials: Credentials): boolean;
}

/** Where a cluster is and how to prove who asks. */
export interface Connection {
  /** `https://host:port`, with a path when the API is below one. `http://` for a local proxy. */
  readonly server: string;
  /** Certificate authorities, PEM. Default: those that Node.js trusts. */
  readonly ca?: string;
  /** Do not verify the server's certificate at all. */
  readonly insecureSkipTlsVerify?: boolean;
  /** The name to verify the certificate for, where it is not the host. */
  readonly tlsServerName?: string;
  /** Absent: anonymous. */
  readonly credentials?: CredentialSource;
  /** Where all this was read, for messages: `context "dev" of /home/…`. */
  readonly origin?: string;
}

/** Credentials that never change. */
export function fixedCredentials(credentials: Credentials, description: string): CredentialSource {
  return { description, current: () => Promise.resolve(credentials), refused: () => false };
}

/** A bearer token that never changes. */
export function tokenCredentials(token: string, description = 'a bearer token'): CredentialSource {
  return fixedCredentials({ authorization: `Bearer ${token}` }, description);
}

/** The headers that carry credentials. */
export function credentialHeaders({ authorization, impersonate }: Credentials): Record<string, string | string[]> {
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
