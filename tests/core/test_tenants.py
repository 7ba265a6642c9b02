"""tenants: which namespaces a store has, for whoever may read its file."""

from relet.core.rules.tenants import TENANTS, FindTenants, Tenant


def test_each_tenant_is_named_once_with_its_queues_and_pages_go_on_after_a_name(scene):
    scene.submit("t")
    scene.submit("u", queue="other")
    store = scene.backend.store
    assert store.answer(TENANTS, FindTenants(), "default") == [Tenant(name="default", queues=2)]
    assert store.answer(TENANTS, FindTenants(after="default"), "default") == []
