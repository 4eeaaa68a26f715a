/**
 * namespace-owner: admits pods only into namespaces that say who owns them.
 *
 * It asks the cluster for the pod's namespace and rejects the pod when the namespace lacks the label of the settings.
 * The server answers that question only when the policy's definition lists Namespace under `contextAwareResources`.
 *
 * Settings: `label`, the name of the label.
 */
import {
  Json,
  Question,
  accept,
  hostCall,
  invalidSettings,
  parse,
  reject,
  serve,
  validSettings,
} from '../assemblyscript/wapc';

function validate(question: Question): Json {
  const label = question.settings.get('label').text;
  const name = question.request.get('namespace').text;
  const query = Json.object()
    .set('api_version', Json.string('v1'))
    .set('kind', Json.string('Namespace'))
    .set('name', Json.string(name))
    .set('disable_cache', Json.bool(false));
  const answer = hostCall('kubewarden', 'kubernetes', 'get_resource', query.toString());
  if (!answer.ok) {
    return reject('namespace "' + name + '" could not be read: ' + answer.text);
  }
  const namespace = parse(answer.text);
  if (namespace.get('metadata').get('labels').get(label).text != '') {
    return accept();
  }
  return reject('namespace "' + name + '" has no label "' + label + '": label it with who is responsible for it');
}

function validateSettings(settings: Json): Json {
  const label = settings.get('label');
  if (!label.isString() || label.text == '') {
    return invalidSettings('label: expected the name of a label, such as "owner"');
  }
  return validSettings();
}

export function __guest_call(operationLength: i32, payloadLength: i32): i32 {
  return serve(operationLength, payloadLength, validate, validateSettings);
}
