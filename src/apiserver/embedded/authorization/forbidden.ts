import { quote } from '../../../go/index.ts';
import { ApiError } from '../../../cluster/index.ts';
import { groupResourceOf } from '../../../resources/index.ts';
import type { AccessAttributes } from '../request/request.ts';

/** The error for a forbidden request. The name may be empty. */
export function forbiddenError(type: { readonly group: string; readonly resource: string }, name: string, why: string) {
  const { group, resource } = type;
  const what =
    resource === '' ? 'forbidden' : `${groupResourceOf(type)}${name === '' ? '' : ` ${quote(name)}`} is forbidden`;
  return new ApiError(403, 'Forbidden', `${what}: ${why}`, {
    ...(name === '' ? {} : { name }),
    ...(group === '' ? {} : { group }),
    ...(resource === '' ? {} : { kind: resource }),
  });
}

/** The error for a request that was not authorized. `reason` is the reason of the decision. */
export function forbidden(attributes: AccessAttributes, reason = ''): ApiError {
  const { group = '', resource = '', name = '', path } = attributes;
  const message = escapeMarkup(describe(attributes));
  const why = reason === '' ? message : `${message}: ${reason}`;
  return forbiddenError(path === undefined ? { group, resource } : { group: '', resource: '' }, name, why);
}

function describe({ user, verb, group = '', resource = '', subresource, namespace, path }: AccessAttributes): string {
  const who = `User ${quote(user.username)} cannot ${verb}`;
  if (path !== undefined) {
    return `${who} path ${quote(path)}`;
  }
  const whole = subresource === undefined || subresource === '' ? resource : `${resource}/${subresource}`;
  const where =
    namespace === undefined || namespace === '' ? 'at the cluster scope' : `in the namespace ${quote(namespace)}`;
  return `${who} resource ${quote(whole)} in API group ${quote(group)} ${where}`;
}

/** Escapes HTML as API servers do, because browsers may show messages with input of clients. */
function escapeMarkup(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}
