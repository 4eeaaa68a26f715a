/**
 * default-seccomp: gives pods without a seccomp profile the profile of the settings.
 *
 * A pod that turns seccomp off (`Unconfined`), as a whole or in one container, is rejected: it was asked for, so
 * changing it silently would surprise.
 *
 * Settings: `profile`, `RuntimeDefault` (also when it is missing) or `Localhost` together with `localhostProfile`.
 */
import { Json, Question, accept, invalidSettings, mutate, reject, serve, validSettings } from '../assemblyscript/wapc';

const CONTAINER_LISTS: string[] = ['initContainers', 'containers', 'ephemeralContainers'];

function validate(question: Question): Json {
  const object = question.request.get('object');
  const spec = object.get('spec');
  if (!spec.isObject()) {
    return accept();
  }
  const where = unconfined(spec);
  if (where != '') {
    return reject(where + ' turns seccomp off with type Unconfined: use RuntimeDefault, or leave seccompProfile out');
  }
  const context = spec.ensureObject('securityContext');
  if (context.get('seccompProfile').isObject()) {
    return accept();
  }
  context.set('seccompProfile', profileOf(question.settings));
  return mutate(object);
}

/** The place that turns seccomp off; an empty text when there is none. */
function unconfined(spec: Json): string {
  if (isUnconfined(spec)) {
    return 'the pod';
  }
  for (let i = 0; i < CONTAINER_LISTS.length; i++) {
    const containers = spec.get(CONTAINER_LISTS[i]).items;
    for (let k = 0; k < containers.length; k++) {
      if (isUnconfined(containers[k])) {
        return 'container "' + containers[k].get('name').text + '"';
      }
    }
  }
  return '';
}

function isUnconfined(holder: Json): bool {
  return holder.get('securityContext').get('seccompProfile').get('type').text == 'Unconfined';
}

function profileOf(settings: Json): Json {
  const type = settings.has('profile') ? settings.get('profile').text : 'RuntimeDefault';
  const profile = Json.object().set('type', Json.string(type));
  return type == 'Localhost' ? profile.set('localhostProfile', settings.get('localhostProfile')) : profile;
}

function validateSettings(settings: Json): Json {
  const profile = settings.get('profile');
  if (settings.has('profile') && profile.text != 'RuntimeDefault' && profile.text != 'Localhost') {
    return invalidSettings('profile: expected "RuntimeDefault" or "Localhost", got ' + profile.toString());
  }
  const path = settings.get('localhostProfile');
  if (profile.text == 'Localhost' && path.text == '') {
    return invalidSettings('localhostProfile: expected the path of a profile, as profile is "Localhost"');
  }
  if (profile.text != 'Localhost' && settings.has('localhostProfile')) {
    return invalidSettings('localhostProfile: only used when profile is "Localhost"');
  }
  return validSettings();
}

export function __guest_call(operationLength: i32, payloadLength: i32): i32 {
  return serve(operationLength, payloadLength, validate, validateSettings);
}
