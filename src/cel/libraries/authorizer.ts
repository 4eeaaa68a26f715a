import type { FunctionDeclaration, Library } from '../model/library.ts';
import { BOOL, STRING, struct } from '../model/type.ts';
import type { CelType } from '../model/type.ts';
import type { CelResult } from '../model/value.ts';
import type {
  AuthorizationAnswer,
  AuthorizerValue,
  AuthorizationDecision,
  GroupCheck,
  PathCheck,
  ResourceCheck,
} from './authorizer-values.ts';
import { fixed, NOMINAL, SELECTOR } from './costs.ts';
import { describe, member } from './declare.ts';

/** Types of the authorizer library. */
export const AUTHORIZER: ReturnType<typeof struct> = struct('kubernetes.authorization.Authorizer');
export const RESOURCE_CHECK: ReturnType<typeof struct> = struct('kubernetes.authorization.ResourceCheck');
const PATH_CHECK = struct('kubernetes.authorization.PathCheck');
const GROUP_CHECK = struct('kubernetes.authorization.GroupCheck');
const DECISION = struct('kubernetes.authorization.Decision');

/** Allows two checks within the cost limit of an expression in API servers. */
const CHECK_COST = 350_000;

const PODS = "authorizer.group('').resource('pods')";

function narrowedCheck(
  property: 'subresource' | 'namespace' | 'name' | 'fieldSelector' | 'labelSelector',
  id: string,
  summary: string,
  value: string,
): FunctionDeclaration {
  const withProperty = (check: ResourceCheck, text: string) => check.with(property, text);
  const costs = property.endsWith('Selector') ? SELECTOR : NOMINAL;
  return describe(
    property,
    summary,
    [`${PODS}.${property}('${value}').check('list').allowed()`, 'true'],
    [member(id, [RESOURCE_CHECK, STRING], RESOURCE_CHECK, withProperty, costs)],
  );
}

function decisionFunction(
  name: string,
  type: CelType,
  summary: string,
  result: string,
  get: (answer: AuthorizationAnswer) => CelResult,
): FunctionDeclaration {
  return describe(
    name,
    summary,
    [`${PODS}.check('list').${name}()`, result],
    [member(`decision_${name}`, [DECISION], type, (decision: AuthorizationDecision) => get(decision.answer), NOMINAL)],
  );
}

/** Authorization checks. In the examples, the user may do everything. */
export const AUTHORIZER_LIBRARY: Library = {
  name: 'Authorizer',
  since: 27,
  types: [AUTHORIZER, PATH_CHECK, GROUP_CHECK, RESOURCE_CHECK, DECISION],
  functions: [
    describe(
      'path',
      'A check of access to a path that is not a resource.',
      ["authorizer.path('/healthz').check('get').allowed()", 'true'],
      [
        member(
          'authorizer_path',
          [AUTHORIZER, STRING],
          PATH_CHECK,
          (value: AuthorizerValue, path: string) => value.path(path),
          NOMINAL,
        ),
      ],
    ),
    describe(
      'group',
      'A check of access to resources of an API group.',
      [`${PODS}.check('list').allowed()`, 'true'],
      [
        member(
          'authorizer_group',
          [AUTHORIZER, STRING],
          GROUP_CHECK,
          (value: AuthorizerValue, group: string) => value.group(group),
          NOMINAL,
        ),
      ],
    ),
    describe(
      'serviceAccount',
      'The authorizer for a service account, given by namespace and name.',
      ["authorizer.serviceAccount('default', 'builder').path('/healthz').check('get').allowed()", 'true'],
      [
        member(
          'authorizer_serviceaccount',
          [AUTHORIZER, STRING, STRING],
          AUTHORIZER,
          (value: AuthorizerValue, namespace: string, name: string) => value.serviceAccount(namespace, name),
          NOMINAL,
        ),
      ],
    ),
    describe(
      'resource',
      'A check of access to a resource, given by its plural name.',
      [`${PODS}.check('delete').allowed()`, 'true'],
      [
        member(
          'groupcheck_resource',
          [GROUP_CHECK, STRING],
          RESOURCE_CHECK,
          (check: GroupCheck, resource: string) => check.resource(resource),
          NOMINAL,
        ),
      ],
    ),
    narrowedCheck('subresource', 'resourcecheck_subresource', 'The check for a subresource.', 'log'),
    narrowedCheck('namespace', 'resourcecheck_namespace', 'The check for a namespace.', 'default'),
    narrowedCheck('name', 'resourcecheck_name', 'The check for the object with a name.', 'web'),
    describe(
      'check',
      'The decision of the authorizer for a verb.',
      [`${PODS}.check('list').allowed()`, 'true'],
      [
        member(
          'pathcheck_check',
          [PATH_CHECK, STRING],
          DECISION,
          (check: PathCheck, verb: string) => check.check(verb),
          fixed(CHECK_COST),
        ),
        member(
          'resourcecheck_check',
          [RESOURCE_CHECK, STRING],
          DECISION,
          (check: ResourceCheck, verb: string) => check.check(verb),
          fixed(CHECK_COST),
        ),
      ],
    ),
    decisionFunction('errored', BOOL, 'Whether the authorizer failed.', 'false', ({ error }) => error !== undefined),
    decisionFunction(
      'error',
      STRING,
      'The error of the authorizer, or an empty string.',
      "''",
      ({ error }) => error ?? '',
    ),
    decisionFunction(
      'allowed',
      BOOL,
      'Whether the authorizer allows the request.',
      'true',
      ({ isAllowed }) => isAllowed,
    ),
    decisionFunction('reason', STRING, 'The reason that the authorizer gives.', "''", ({ reason }) => reason),
  ],
};

/** Authorization checks for lists with a selector. */
export const AUTHORIZER_SELECTORS_LIBRARY: Library = {
  name: 'Authorizer',
  since: 31,
  functions: [
    narrowedCheck(
      'fieldSelector',
      'authorizer_fieldselector',
      'The check for a list request with a field selector.',
      'spec.nodeName=a',
    ),
    narrowedCheck(
      'labelSelector',
      'authorizer_labelselector',
      'The check for a list request with a label selector.',
      'app=web',
    ),
  ],
};
