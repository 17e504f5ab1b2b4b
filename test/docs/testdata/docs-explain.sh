#### spillway explain instance/database
spillway package install examples/packages/greeter database -n shop --wait
