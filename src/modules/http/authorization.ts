/** The characters of a bearer token (RFC 6750, section 2.1). */
const BEARER_TOKEN = /^[A-Za-z0-9._~+/-]+=*$/;

/** Whether a token can be sent as `Authorization: Bearer`. */
export function isBearerToken(token: string): boolean {
  return BEARER_TOKEN.test(token);
}

/** The header `Authorization` for a user and password (RFC 7617). */
export function basicAuthorization(user: string, password: string): string {
  return `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`;
}
