"""Mutants of the service and its client: who is let in, what is whose, and answers that are lost on the way."""

from __future__ import annotations

from typing import Final

from tests.mutants.mutant import Mutant

ADVISORIES: Final = "tests/server/test_advisories.py"
CLIENT: Final = "tests/server/test_client.py"
LOST: Final = "tests/server/test_lost_answers.py"
MATRIX: Final = "tests/server/test_matrix.py"
OWN: Final = "tests/server/test_own_questions.py"
SERVE: Final = "tests/server/test_serve.py"
TAMPERED: Final = "tests/server/test_tampered.py"
TOGETHER: Final = "tests/server/test_together.py"
TENANTS: Final = "tests/server/test_tenants.py"

SERVICE: Final = (
    Mutant(
        "what is stored and no JSON is tried as a pickle",
        ("P16",),
        "core/payload.py",
        "    except (msgspec.MsgspecError, RecursionError) as wrong:\n        raise Unavailable(",
        "    except (msgspec.MsgspecError, RecursionError) as wrong:\n"
        "        import pickle\n"
        "        return pickle.loads(text if isinstance(text, bytes) else str(text).encode())\n"
        "        raise Unavailable(",
        f"{TAMPERED}::test_what_is_no_json_is_given_to_no_other_loader",
    ),
    Mutant(
        "what ends like a health check needs no key",
        ("P15",),
        "server/gate.py",
        'if scope["path"] not in OPEN_PATHS:',
        'if not scope["path"].endswith(tuple(OPEN_PATHS)):',
        f"{ADVISORIES}::test_adv_09_a_path_that_looks_like_a_health_check_needs_a_key",
    ),
    Mutant(
        "a role is not asked for",
        ("P15",),
        "server/routes.py",
        "        if (refusal := access.refusal(operation.name, ())) is not None:\n            raise refusal\n",
        "",
        f"{MATRIX}::test_a_role_does_what_its_scopes_allow_and_nothing_else",
    ),
    Mutant(
        "a revoked key opens what it opened",
        ("P15",),
        "server/keys.py",
        "or found is None or not found.key.good:",
        "or found is None:",
        f"{ADVISORIES}::test_adv_15_and_16_a_revoked_key_opens_nothing_from_its_next_request_on",
    ),
    Mutant(
        "whoever knows the id of a key has the key",
        ("P15",),
        "server/keys.py",
        "is_its_own = is_key(key, None if found is None else found.digest)",
        "is_its_own = True",
        f"{CLIENT}::test_who_knows_the_id_of_a_key_has_not_the_key",
    ),
    Mutant(
        "every request is of the service's own tenant",
        ("P15",),
        "server/service.py",
        "            other.tenant = tenant\n",
        "",
        f"{TENANTS}::test_what_is_another_tenants_is_as_if_it_did_not_exist",
    ),
    Mutant(
        "heartbeats are those of whichever tenant asked first",
        ("P15",),
        "server/renewals.py",
        "(together := self._tenants.get(tenant)) is None:\n            together = self._tenants[tenant] =",
        '(together := self._tenants.get("all")) is None:\n            together = self._tenants["all"] =',
        f"{TOGETHER}::test_heartbeats_of_one_tenant_share_a_call_and_each_has_its_own_answers",
    ),
    Mutant(
        "a key that is bound to queues reaches the tasks of all",
        ("P15",),
        "server/reach.py",
        "        if await _queue_of(service, access.tenant, task_id) not in access.queues:\n",
        "        if False:\n",
        f"{TENANTS}::test_a_key_that_is_bound_to_queues_changes_and_sees_nothing_of_another_one",
    ),
    Mutant(
        "whoever knows a digest has the bytes",
        ("P15",),
        "server/uploads.py",
        "            if digest not in own.named and not await self._was_sent(mark):\n",
        "            if False:\n",
        f"{TENANTS}::test_bytes_are_given_to_whoever_names_them_and_to_nobody_else",
    ),
    Mutant(
        "who answers a question says by which key",
        ("P15", "waits"),
        "server/reach.py",
        "if isinstance(ask, (Park, Decide)) else ask",
        "if isinstance(ask, Park) else ask",
        f"{OWN}::test_the_key_that_asked_does_not_decide",
    ),
    Mutant(
        "a page of another site may ask",
        ("P15",),
        "server/gate.py",
        "if origin is not None and not self._hosts.is_site(origin):",
        "if False:",
        f"{ADVISORIES}::test_adv_07_17_and_29_a_page_of_another_site_may_ask_nothing_by_any_method",
    ),
    Mutant(
        "no answer means that nothing was done",
        ("P13",),
        "client/http/line.py",
        "        if writes:\n",
        "        if False:\n",
        f"{LOST}::test_what_cannot_be_repeated_is_told_as_unknown",
    ),
    Mutant(
        "a heartbeat waits for its answer past the deadline",
        ("P6",),
        "client/http/backend.py",
        "span = Span.within(seconds) if is_hasty else Span.usual(seconds)",
        "span = Span.usual(seconds)",
        f"{LOST}::test_who_is_cut_off_past_the_deadline_stops_before_anybody_else_begins",
    ),
    Mutant(
        "a start of the service is no outage",
        ("P3",),
        "cli/serving.py",
        "        extended = served.begin_to_serve()\n",
        "        extended = 0\n",
        f"{SERVE}::test_what_nobody_could_renew_while_it_was_down_is_held_again",
    ),
    Mutant(
        "a forked child goes on over its parent's line",
        ("P13",),
        "client/http/backend.py",
        "        self.line.abandon()\n        self._beats.abandon()\n",
        "",
        f"{CLIENT}::test_a_forked_child_has_a_line_of_its_own",
    ),
)
