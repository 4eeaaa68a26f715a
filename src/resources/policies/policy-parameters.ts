// Parameters of policies: data of a namespace that override settings.
import { choice, defaulted, list, object, optional, text } from '../schema-builder.ts';
import type { Infer } from '../schema-builder.ts';

/** Keys of settings that parameters may override: more than any policy has. */
export const MAX_OVERRIDABLE_KEYS = 64;
/** Annotations or labels of a namespace that a policy reads as parameters. */
export const MAX_NAMESPACE_KEYS = 32;
/** Characters of an expression. The one for all fields of a PodSecurityPolicy has 2,000. */
export const MAX_SETTINGS_EXPRESSION = 16_384;
/** Characters of a qualified name: a DNS subdomain, a slash and 63 more. */
const MAX_QUALIFIED_NAME = 317;

const API_VERSION = text('As in `example.com/v1`.', { minLength: 1, maxLength: MAX_QUALIFIED_NAME });
const KIND = text('As in `ToolProfile`. A namespaced kind.', { minLength: 1, maxLength: 63 });
const NAME = text('The name of the object, the same in all namespaces.', { minLength: 1, maxLength: 253 });

const keys = (description: string) =>
  list(description, text('The key.', { minLength: 1, maxLength: MAX_QUALIFIED_NAME }), {
    maxItems: MAX_NAMESPACE_KEYS,
    'x-kubernetes-list-type': 'atomic',
  });

const NAMESPACE = object(
  'Annotations and labels of the namespace of the request. Only those that are listed count.',
  {
    annotations: optional(keys('Keys of annotations.')),
    labels: optional(keys('Keys of labels.')),
  },
  {
    rules: [
      {
        rule: '(has(self.annotations) && size(self.annotations) > 0) || (has(self.labels) && size(self.labels) > 0)',
        message: 'expected at least one annotation or label',
      },
    ],
  },
);

const ONE_SOURCE = [
  {
    // A reserved word of CEL is escaped.
    rule: 'has(self.resource) != has(self.__namespace__)',
    message: 'expected either resource or namespace',
  },
] as const;

const OVERRIDABLE = list(
  'Keys of the settings that parameters may override. All others have the same value for every namespace.',
  text('A key of `settings`.', { minLength: 1, maxLength: 253 }),
  { minItems: 1, maxItems: MAX_OVERRIDABLE_KEYS, 'x-kubernetes-list-type': 'set' },
);

const BEHAVIOR = {
  notFound: defaulted(
    choice(
      'What happens to requests without parameters: `Deny` rejects them, `Allow` admits them without an evaluation, `UseDefaults` evaluates them with `settings` alone.',
      ['Deny', 'Allow', 'UseDefaults'],
    ),
    'Deny',
  ),
  onInvalid: defaulted(
    choice(
      'What happens to requests with invalid parameters: `Deny` rejects them, `KeepLast` evaluates them with the last valid parameters of the namespace, and rejects them when there are none.',
      ['Deny', 'KeepLast'],
    ),
    'Deny',
  ),
  onRollout: defaulted(
    choice(
      'What happens to a new revision that would reject requests for parameters that exist: `Fail`, it does not serve, or `Warn`, it serves with a warning.',
      ['Fail', 'Warn'],
    ),
    'Fail',
  ),
  overridable: OVERRIDABLE,
  settingsExpression: text(
    'A CEL expression over `params` and `namespaceObject` whose result is a map from overridable keys to their values.',
    { minLength: 1, maxLength: MAX_SETTINGS_EXPRESSION },
  ),
} as const;

const DESCRIPTION = 'Data of each namespace that override settings, so that one policy serves all tenants.';

/** Parameters of cluster-wide policies. */
export const PARAMETERS = object(DESCRIPTION, {
  from: object(
    'Where the parameters of a request are.',
    {
      resource: optional(
        object('An object.', {
          apiVersion: API_VERSION,
          kind: KIND,
          name: NAME,
          namespace: optional(
            text('The namespace of the object. Default: that of the request.', { minLength: 1, maxLength: 63 }),
          ),
        }),
      ),
      namespace: optional(NAMESPACE),
    },
    { rules: ONE_SOURCE },
  ),
  ...BEHAVIOR,
});

/** Parameters of policies of a namespace, which are in the same namespace. */
export const NAMESPACED_PARAMETERS = object(DESCRIPTION, {
  from: object(
    'Where the parameters are.',
    {
      resource: optional(
        object('An object in the namespace of the policy.', { apiVersion: API_VERSION, kind: KIND, name: NAME }),
      ),
      namespace: optional(NAMESPACE),
    },
    { rules: ONE_SOURCE },
  ),
  ...BEHAVIOR,
});

export type PolicyParameters = Infer<typeof PARAMETERS>;
